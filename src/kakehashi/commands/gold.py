"""Options of commands that read alignments off models, and compare them with people's."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kakehashi.data.reading import read_lines
from kakehashi.evaluation.links import Gold, gold_links, turned_round

if TYPE_CHECKING:
    from kakehashi.inference.translator import Translator

ATTENTION, GOLD = "The attention", "Against people's alignments"

Layer = Annotated[
    int | None,
    typer.Option(min=1, rich_help_panel=ATTENTION, help="Decoder layer; else the model's choice."),
]
Head = Annotated[
    str | None,
    typer.Option(
        metavar="N|mean",
        rich_help_panel=ATTENTION,
        help="A head of it, or the mean of all; else the model's choice.",
    ),
]
Shift = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=1,
        rich_help_panel=ATTENTION,
        help="0: at the step that writes a piece; 1: at the one that reads it.",
    ),
]
First = Annotated[
    int,
    typer.Option(
        "--gold-first",
        min=0,
        max=1,
        rich_help_panel=GOLD,
        help="The number of a line's first word in the gold.",
    ),
]
Turned = Annotated[
    bool,
    typer.Option(
        "--gold-turned",
        rich_help_panel=GOLD,
        help="The gold's links name the target's word first.",
    ),
]


def head_number(head: str | None) -> int | None:
    """The head that is meant, from 1; None: the mean of all.

    Raises:
        typer.BadParameter: for what is neither.
    """
    if head in (None, "mean"):
        return None
    assert head is not None
    if not head.isdecimal() or int(head) < 1:
        raise typer.BadParameter(f"--head is {head!r}; it is a number from 1, or mean")
    return int(head)


def look_at(
    translator: "Translator", layer: int | None, head: str | None, shift: int | None
) -> None:
    """Read alignments off the attention that the options name, if they name one.

    What is not named stays as the model has it; of another layer than its own, the mean of all
    heads.

    Raises:
        ConfigError: where there is no such attention.
        typer.BadParameter: for a head that is no number.
    """
    from kakehashi.models.alignment import AlignmentChoice

    number = head_number(head)
    if (layer, head, shift) == (None, None, None):
        return
    usual = translator.alignment_choice()
    layer = usual.layer if layer is None else layer
    if head is None and layer == usual.layer:
        number = usual.head
    shift = usual.shift if shift is None else shift
    translator.read_alignments_from(AlignmentChoice(layer, number, shift))


def read_gold(path: Path, first: int, turned: bool) -> list[Gold]:
    """Gold alignments whose links name the source's word first.

    Raises:
        DataError: for what is no link, with its line.
    """
    gold = gold_links(read_lines(path), str(path), first=first)
    return [turned_round(one) for one in gold] if turned else gold
