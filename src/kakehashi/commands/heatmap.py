"""`kakehashi heatmap`: where a model looks while it translates one sentence."""

from pathlib import Path
from typing import Annotated

import typer


def heatmap(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model or run folder.")],
    text: Annotated[str, typer.Option(help="The sentence to translate.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The picture: a .png, .pdf or .svg file.")
    ],
    target: Annotated[
        str | None, typer.Option(help="The translation to follow; else the model's own.")
    ] = None,
    layer: Annotated[
        int | None,
        typer.Option(min=1, help="Decoder layer; else the last but one, or the last of two."),
    ] = None,
    head: Annotated[
        str, typer.Option(metavar="N|mean", help="One head, or the mean of all.")
    ] = "mean",
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto: a GPU if there is one.")] = "cpu",
) -> None:
    """Draw the cross-attention of one translation: a row for each piece it writes."""
    if head != "mean" and not (head.isdecimal() and int(head) >= 1):
        raise typer.BadParameter(f"--head is {head!r}; it is a number from 1, or mean")
    from kakehashi.inference.translator import Translator
    from kakehashi.insight.sentence import draw_attention

    shown = draw_attention(
        Translator.load(model, device),
        text,
        output,
        target=target,
        layer=layer,
        head=None if head == "mean" else int(head),
    )
    typer.echo(f"{output}: {shown}", err=True)
