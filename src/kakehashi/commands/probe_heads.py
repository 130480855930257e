"""`kakehashi probe heads`: what each head attends to, and what a model loses without it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kakehashi.commands import searching as given
from kakehashi.commands.parallel import Output, count_pairs, line_pairs
from kakehashi.commands.progress import progress
from kakehashi.commands.streams import input_lines
from kakehashi.errors import DataError

if TYPE_CHECKING:
    from kakehashi.inference.options import Options
    from kakehashi.inference.translator import Translator
    from kakehashi.insight.ablation import Ablation
    from kakehashi.insight.heads import HeadStudy, Pieces
    from kakehashi.insight.table import Value
    from kakehashi.models.interface import Head


def heads(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model or run folder.")],
    source: Annotated[Path, typer.Option(help="Lines to read and to translate.")],
    reference: Annotated[
        Path | None,
        typer.Option(
            help="Their translations: what the model is to follow, and what BLEU is against. "
            "Without it the model follows its own, and no head is removed."
        ),
    ] = None,
    lines: Annotated[
        int | None, typer.Option(min=1, help="Only so many lines, evenly spread; else all.")
    ] = None,
    lexicon: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="SOURCE TARGET",
            help="A text and its translation to learn from which pieces go together: the training "
            "text is best. Else --source and --reference, which may be too little.",
        ),
    ] = None,
    beam: given.Beam = 1,
    picture: Annotated[
        Path | None, typer.Option(help="Draw every head: a .png, .pdf or .svg file.")
    ] = None,
    output: Output = None,
    batch_size: given.BatchSize = None,
    threads: given.Threads = None,
    device: given.Device = "cpu",
) -> None:
    """Where the weight of every head lies, its entropy, and the BLEU it is worth.

    A share in brackets is what attending to all places alike would give. A head is named after
    where it looks only if that share is twice the other and 20 points above it. BLEU lost is what
    translating without the head costs. -o writes all columns as .tsv, .md or .json.
    """
    from kakehashi.commands.streams import output_stream, write_text
    from kakehashi.commands.tables import columns
    from kakehashi.insight.ablation import torch_engine
    from kakehashi.insight.headpicture import draw_heads
    from kakehashi.insight.headtable import for_people, records, removals
    from kakehashi.insight.heatmap import picture_format
    from kakehashi.insight.table import cells, check_format, table_lines

    if output is not None:
        check_format(output)
    if picture is not None:
        picture_format(picture)
    pairs = _read(source, reference, lines)
    with output_stream(output) as stream:
        translator = given.load_translator([model], device, threads, given.EngineName.torch)
        groups = removals(torch_engine(translator).model.heads())
        studies = _study(translator, pairs, lexicon, beam)
        ablation = None
        if reference is not None:
            options = given.search_options(beam=beam, batch_size=batch_size)
            ablation = _ablate(translator, pairs, groups, options)
        rows = records(studies, groups, ablation)
        if output is None:
            write_text(stream, columns(cells(for_people(rows))))
        else:
            facts: dict[str, Value] = {"lines": len(pairs), "beam": beam}
            if ablation is not None:
                facts |= {"bleu": ablation.bleu, "signature": ablation.signature}
            shown = for_people(rows) if output.suffix == ".md" else rows
            write_text(stream, table_lines(output, shown, facts))
    if ablation is not None:
        typer.echo(
            f"{len(pairs):,} lines, beam {beam}: BLEU {ablation.bleu:.2f} {ablation.signature}",
            err=True,
        )
    if picture is not None:
        draw_heads(studies, groups, ablation, picture)
        typer.echo(f"{picture}: {len(studies)} heads", err=True)


Pair = tuple[str, str | None]
"""A line, and its translation if there is one."""


def _read(source: Path, reference: Path | None, lines: int | None) -> list[Pair]:
    """The pairs, or so many of them evenly spread."""
    pairs: list[Pair]
    if reference is None:
        pairs = [(line, None) for line in input_lines(source)]
    else:
        count_pairs(source, reference)
        pairs = list(line_pairs(source, reference))
    if not any(line.strip() for line, _ in pairs):
        raise DataError(f"{source} holds no text: there is nothing to read")
    if lines is None or lines >= len(pairs):
        return pairs
    return [pairs[number * len(pairs) // lines] for number in range(lines)]


def _study(
    translator: "Translator", pairs: list[Pair], lexicon: tuple[Path, Path] | None, beam: int | None
) -> "list[HeadStudy]":
    from kakehashi.insight.ablation import torch_engine
    from kakehashi.insight.heads import study_heads

    with progress("reading attention", "lines", len(pairs)) as report:
        sentences = _sentences(translator, pairs, lexicon, beam)
        return study_heads(torch_engine(translator), sentences, report.advance)


def _sentences(
    translator: "Translator", pairs: list[Pair], lexicon: tuple[Path, Path] | None, beam: int | None
) -> "Iterator[Pieces]":
    """What the model is to read and to follow, with the links that the lexicon knows."""
    from kakehashi.insight.ablation import torch_engine
    from kakehashi.insight.heads import Pieces, followed_pairs
    from kakehashi.insight.lexical import LexicalLinks

    tokenizer, engine = translator.tokenizer, torch_engine(translator)
    known = None
    given_pairs = [(line, text) for line, text in pairs if text is not None]
    text: Sequence[tuple[str, str]] = given_pairs
    if lexicon is not None:
        count_pairs(*lexicon)
        text = list(line_pairs(*lexicon))
    if text:
        known = LexicalLinks(tokenizer, [line for line, _ in text], [line for _, line in text])
    rows = tokenizer.encode_batch([line for line, _ in pairs])
    targets = tokenizer.encode_batch([line for _, line in given_pairs]) if given_pairs else None
    config = replace(translator.config.decoding, beam=beam or 1)
    for row, target in followed_pairs(engine, rows, targets, config):
        links = None if known is None else known.links(row, target)
        yield Pieces(row, target, tokenizer.pieces(row), tokenizer.pieces(target), links)


def _ablate(
    translator: "Translator",
    pairs: list[Pair],
    groups: "Sequence[Sequence[Head]]",
    options: "Options",
) -> "Ablation":
    from kakehashi.insight.ablation import ablation

    lines, references = [line for line, _ in pairs], [text or "" for _, text in pairs]
    with progress("translating without heads", "lines", len(lines) * (len(groups) + 1)) as report:
        return ablation(
            translator, lines, references, groups, options=options, advance=report.advance
        )
