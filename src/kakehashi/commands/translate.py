"""`kakehashi translate`: lines in, as many lines out."""

import json
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from kakehashi.inference.translation import Translation


class Format(StrEnum):
    """What a result line holds."""

    text = "text"
    jsonl = "jsonl"


def translate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model or run folder.")],
    source: Annotated[
        Path | None,
        typer.Option("--input", "-i", help="File to translate, a sentence a line; else stdin."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; else stdout.")
    ] = None,
    beam: Annotated[
        int | None, typer.Option(min=1, help="Hypotheses kept; 1 is greedy, the fastest.")
    ] = None,
    length_penalty: Annotated[
        float | None, typer.Option(min=0, help="Larger prefers longer translations; 0 shorter.")
    ] = None,
    n_best: Annotated[
        int, typer.Option(min=1, help="Translations of each line, at most --beam.")
    ] = 1,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Sentences at a time; 1 answers line by line.")
    ] = None,
    form: Annotated[
        Format,
        typer.Option("--format", help="text: lines. jsonl: scores, n-best and warnings too."),
    ] = Format.text,
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto: a GPU if there is one.")] = "cpu",
) -> None:
    """Translate text, one line for each line.

    Blank lines stay blank. With --n-best over 1 a text line is `line ||| translation ||| score`,
    best first; lines are counted from 1.
    """
    from kakehashi.commands.progress import progress
    from kakehashi.commands.streams import count_lines, input_lines, output_stream, write_text
    from kakehashi.inference.options import Options
    from kakehashi.inference.translator import Translator

    interactive = source is None and sys.stdin.isatty()
    with output_stream(output) as stream:
        total = count_lines(source)
        translator = Translator.load(model, device)
        results = translator.stream(
            input_lines(source),
            Options(
                beam=beam,
                length_penalty=length_penalty,
                n_best=n_best,
                batch_size=1 if interactive else batch_size,
            ),
        )
        show = not interactive and (output is not None or not sys.stdout.isatty())
        with progress("translating", "lines", total, show=show) as report:
            for number, result in enumerate(results, 1):
                for warning in result.warnings:
                    report.note(warning)
                write_text(stream, _lines(number, result, form, n_best))
                report.advance()


def _lines(number: int, result: "Translation", form: Format, n_best: int) -> Iterable[str]:
    if form is Format.jsonl:
        return [json.dumps(_record(number, result), ensure_ascii=False)]
    if n_best == 1:
        return [result.text]
    return [f"{number} ||| {h.text} ||| {h.score:.4f}" for h in result.hypotheses]


def _record(number: int, result: "Translation") -> dict[str, Any]:
    return {
        "line": number,
        "translation": result.text,
        "score": result.score,
        "hypotheses": [{"text": h.text, "score": h.score} for h in result.hypotheses],
        "warnings": list(result.warnings),
    }
