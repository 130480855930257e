"""`kakehashi translate`: lines in, as many lines out."""

import sys
import time
from collections import deque
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kakehashi.commands import searching as given

if TYPE_CHECKING:
    from kakehashi.inference.translation import Candidate, Translation

LINES, RULES = "Lines in and out", "What every translation must look like"
KEPT = "What a line is made of"


class Format(StrEnum):
    """What a line holds."""

    text = "text"
    jsonl = "jsonl"


def translate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model or run folder.")],
    source: Annotated[
        Path | None,
        typer.Option(
            "--input",
            "-i",
            rich_help_panel=LINES,
            help="File to translate, a sentence a line; else stdin.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", rich_help_panel=LINES, help="File to write; else stdout."),
    ] = None,
    input_form: Annotated[
        Format,
        typer.Option(
            "--input-format",
            rich_help_panel=LINES,
            help="jsonl: text, and as needed prefix, required, forbidden of each line.",
        ),
    ] = Format.text,
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            rich_help_panel=LINES,
            help="text: lines. jsonl: scores, tokens, alignment, n-best, warnings too.",
        ),
    ] = Format.text,
    n_best: Annotated[
        int,
        typer.Option(
            min=1,
            rich_help_panel=LINES,
            help="Translations of each line: up to --beam, --mbr's samples, or any with --sample.",
        ),
    ] = 1,
    beam: given.Beam = None,
    patience: given.Patience = None,
    length_penalty: given.LengthPenalty = None,
    coverage_penalty: given.CoveragePenalty = None,
    min_ratio: given.MinRatio = None,
    max_ratio: given.MaxRatio = None,
    no_repeat_ngram: given.NoRepeatNgram = None,
    repetition_penalty: given.RepetitionPenalty = None,
    diverse: given.Diverse = None,
    diversity: given.Diversity = None,
    sample: given.Sample = False,
    mbr: given.RiskSamples = None,
    temperature: given.Temperature = None,
    top_k: given.TopK = None,
    top_p: given.TopP = None,
    seed: given.Seed = None,
    prefix: Annotated[
        str,
        typer.Option(
            metavar="TEXT", rich_help_panel=RULES, help="It begins so; a last word may go on."
        ),
    ] = "",
    require: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PHRASE",
            rich_help_panel=RULES,
            help="It has this; a last word may go on. May be repeated.",
        ),
    ] = None,
    forbid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PHRASE", rich_help_panel=RULES, help="It does not have this. May be repeated."
        ),
    ] = None,
    split: Annotated[
        bool,
        typer.Option("--split", rich_help_panel=KEPT, help="Translate sentence by sentence."),
    ] = False,
    markup: Annotated[
        bool,
        typer.Option(
            "--markup", rich_help_panel=KEPT, help="Tags like <b> go with the words they enclose."
        ),
    ] = False,
    placeholders: Annotated[
        bool,
        typer.Option(
            "--placeholders",
            rich_help_panel=KEPT,
            help="{name}, %s, addresses ... stay as they are.",
        ),
    ] = False,
    keep: Annotated[
        str | None,
        typer.Option(metavar="REGEX", rich_help_panel=KEPT, help="So does what this finds."),
    ] = None,
    terms: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", rich_help_panel=KEPT, help="Lines `term TAB translation` to keep to."
        ),
    ] = None,
    copy_unknown: Annotated[
        bool,
        typer.Option(
            "--copy-unknown", rich_help_panel=KEPT, help="Copy words the model has no pieces for."
        ),
    ] = False,
    others: given.Together = None,
    batch_size: given.BatchSize = None,
    threads: given.Threads = None,
    device: given.Device = "cpu",
    engine: given.Engine = given.EngineName.torch,
) -> None:
    """Translate text, one line for each line.

    Blank lines stay blank. With --n-best over 1 a text line is `line ||| translation ||| score`,
    best first; lines are counted from 1.
    """
    from kakehashi.commands.parallel import remembered
    from kakehashi.commands.progress import progress
    from kakehashi.commands.requests import requests
    from kakehashi.commands.streams import (
        STDIN,
        count_lines,
        input_lines,
        output_stream,
        write_text,
    )
    from kakehashi.inference.request import Request
    from kakehashi.inference.terms import Terms

    interactive = source is None and sys.stdin.isatty()
    options = given.search_options(
        beam=beam,
        patience=patience,
        length_penalty=length_penalty,
        coverage_penalty=coverage_penalty,
        min_ratio=min_ratio,
        max_ratio=max_ratio,
        no_repeat_ngram=no_repeat_ngram,
        repetition_penalty=repetition_penalty,
        batch_size=1 if interactive and batch_size is None else batch_size,
        n_best=n_best,
        scored=form is Format.jsonl or n_best > 1,
        details=form is Format.jsonl,
        split=split,
        markup=markup,
        placeholders=placeholders,
        keep=keep,
        terms=None if terms is None else Terms.read(terms),
        copy_unknown=copy_unknown,
        sample=sample,
        diverse=diverse,
        diversity=diversity,
        mbr=mbr,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
    )
    everywhere = Request("", prefix, tuple(require or ()), tuple(forbid or ()))
    with output_stream(output) as stream:
        total = count_lines(source)
        translator = given.load_translator([model, *(others or ())], device, threads, engine)
        asked = requests(
            input_lines(source),
            STDIN if source is None else str(source),
            everywhere,
            translator.tokenizer,
            as_json=input_form is Format.jsonl,
        )
        kept = deque[Request]()
        asked = remembered(asked, kept)
        results = translator.stream(asked, options)
        show = not interactive and (output is not None or not sys.stdout.isatty())
        start, number = time.perf_counter(), 0
        with progress("translating", "lines", total, show=show) as report:
            for number, result in enumerate(results, 1):
                for warning in result.warnings:
                    report.note(warning)
                write_text(stream, _lines(number, kept.popleft().text, result, form, n_best))
                report.advance()
        if show and sys.stderr.isatty():
            typer.echo(_summary(number, time.perf_counter() - start), err=True)


def _lines(
    number: int, text: str, result: "Translation", form: Format, n_best: int
) -> Iterable[str]:
    if form is Format.jsonl:
        from kakehashi.commands.requests import json_line

        return [json_line(_record(number, text, result))]
    if n_best == 1:
        return [result.text]
    return [f"{number} ||| {h.text} ||| {h.score:.4f}" for h in result.hypotheses]


def _record(number: int, text: str, result: "Translation") -> dict[str, Any]:
    """What is told of a line; the keys are described in the user's guide."""
    hypotheses = [_told(candidate) for candidate in result.hypotheses]
    best = {key: value for key, value in hypotheses[0].items() if key != "text"}
    return {
        "line": number,
        "source": text,
        "translation": result.text,
        **best,
        "source_tokens": result.source_tokens,
        "seconds": round(result.seconds, 6),
        "hypotheses": hypotheses,
        "warnings": result.warnings,
    }


def _told(candidate: "Candidate") -> dict[str, Any]:
    from kakehashi.inference.alignment import pharaoh

    return {
        "text": candidate.text,
        "score": candidate.score,
        "log_probability": candidate.log_probability,
        "confidence": candidate.confidence,
        "tokens": candidate.tokens,
        "token_log_probabilities": candidate.token_log_probabilities,
        "alignment": candidate.alignment,
        "word_alignment": pharaoh(candidate.word_alignment),
    }


def _summary(lines: int, seconds: float) -> str:
    return f"{lines:,} lines in {seconds:,.1f} s: {lines / max(seconds, 1e-9):,.1f} a second"
