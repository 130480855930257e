"""`kakehashi heatmap`: where a model looks while it translates, as a figure to print."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from kakehashi.insight.sentence import Kind


class KindName(StrEnum):
    """Whose attention."""

    cross = "cross"
    encoder = "encoder"
    decoder = "decoder"


def heatmap(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model or run folder.")],
    text: Annotated[
        list[str], typer.Option(help="A sentence to translate; again for more panels.")
    ],
    output: Annotated[
        list[Path],
        typer.Option(
            "--output", "-o", help="The picture: .png, .pdf or .svg; again for more formats."
        ),
    ],
    target: Annotated[
        list[str] | None,
        typer.Option(help="The translation to follow, one for each --text; else the model's own."),
    ] = None,
    kind: Annotated[
        KindName,
        typer.Option(help="Cross-attention, or the self-attention of the encoder or decoder."),
    ] = KindName.cross,
    layer: Annotated[
        int | None,
        typer.Option(min=1, help="A layer; else the one that is read as alignment, or the last."),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(
            metavar="N|mean|all",
            help="One head, the mean, or a panel for each; else as alignments are read.",
        ),
    ] = None,
    words: Annotated[bool, typer.Option("--words", help="Join the pieces of a word.")] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto: a GPU if there is one.")] = "cpu",
) -> None:
    """Draw the attention of translations: a row for each piece that is written."""
    chosen: int | Literal["all", "mean"] | None = None
    if head == "all":
        chosen = "all"
    elif head == "mean":
        chosen = "mean"
    elif head is not None:
        if not (head.isdecimal() and int(head) >= 1):
            raise typer.BadParameter(f"--head is {head!r}; it is a number from 1, mean, or all")
        chosen = int(head)
    from kakehashi.inference.translator import Translator
    from kakehashi.insight.sentence import draw_attention

    whose: Kind = kind.value
    shown = draw_attention(
        Translator.load(model, device),
        text,
        output,
        targets=target,
        kind=whose,
        layer=layer,
        head=chosen,
        words=words,
    )
    for path in output:
        typer.echo(f"{path}: {shown}", err=True)
