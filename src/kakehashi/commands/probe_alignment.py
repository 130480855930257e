"""`kakehashi probe alignment`: which attention of a model aligns words best, and how well."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kakehashi.commands import gold as people
from kakehashi.commands import searching as given
from kakehashi.commands.align import check_directions
from kakehashi.commands.parallel import Source, Target, count_pairs, line_pairs
from kakehashi.commands.tables import columns

if TYPE_CHECKING:
    from kakehashi.evaluation.alignment import AlignmentScore
    from kakehashi.insight.aligning import Joined, Probed


def alignment(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model or run folder.")],
    source: Source,
    target: Target,
    gold: Annotated[Path, typer.Option(help="File of alignments that people made, line by line.")],
    first: people.First = 0,
    turned: people.Turned = False,
    reverse: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="One of the other direction: measured too, and both."),
    ] = None,
    store: Annotated[
        bool,
        typer.Option(
            "--store", help="Write what is best into the folder: what alignments are read off then."
        ),
    ] = False,
    threads: given.Threads = None,
    device: given.Device = "cpu",
) -> None:
    """Find the layer, head and shift that align words best; AER, less is better.

    They are chosen on the odd lines of the gold, and measured again on the even ones.
    """
    count_pairs(source, target)
    wanted = people.read_gold(gold, first, turned)
    translator = given.load_translator([model], device, threads, given.EngineName.torch)
    pairs = list(line_pairs(source, target))
    from kakehashi.evaluation.links import turned_round
    from kakehashi.inference.storing import store_alignment
    from kakehashi.insight.aligning import probe, probe_together

    chosen = [(model, probe(translator, pairs, wanted))]
    joined = None
    if reverse is not None:
        other = given.load_translator([reverse], device, threads, given.EngineName.torch)
        check_directions(translator.config, other.config)
        back = probe(
            other,
            [(text, line) for line, text in pairs],
            [turned_round(one) for one in wanted],
        )
        chosen.append((reverse, back))
        joined = probe_together(chosen[0][1].links, back.links, wanted)
    for path, found in chosen:
        _show(path, found)
    if joined is not None:
        _show_joined(joined)
    if store:
        for path, found in chosen:
            typer.echo(f"{store_alignment(path, found.choice)}: {found.choice}", err=True)


def _row(name: list[str], score: "AlignmentScore") -> list[str]:
    numbers = score.aer, score.low, score.high, score.precision, score.recall
    return [*name, *(f"{number:.1f}" for number in numbers)]


_SCORES = ["AER", "low", "high", "precision", "recall"]


def _show(path: Path, found: "Probed") -> None:
    rows = [["layer", "head", "shift", *_SCORES]]
    for one in found.table:
        head = "mean" if one.choice.head is None else str(one.choice.head)
        rows.append(_row([str(one.choice.layer), head, str(one.choice.shift)], one.score))
    typer.echo(f"{path}, odd lines")
    typer.echo("\n".join(columns(rows, range(3, 8))))
    typer.echo(f"best: {found.choice}")
    typer.echo(f"even lines: {found.held_out}")
    typer.echo(f"even lines, as it was read so far: {found.usual}")
    typer.echo(f"all lines: {found.everywhere}\n")


def _show_joined(joined: "Joined") -> None:
    rows = [["both directions, odd lines", *_SCORES]]
    rows += [_row([how.value], score) for how, score in joined.table]
    typer.echo("\n".join(columns(rows, range(1, 6))))
    typer.echo(f"best: {joined.table[0][0].value}")
    typer.echo(f"even lines: {joined.held_out}")
    typer.echo(f"all lines: {joined.everywhere}")
