"""`kakehashi explore`: how a model attends, as a page that needs no network."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from kakehashi.inference.translator import Translator
    from kakehashi.insight.explorer.component import Scene

MOST = 100
"""Sentences of one page: one of 20 pieces takes some 50 kB of it."""


def explore(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model or run folder.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page: an .html file.")],
    text: Annotated[
        list[str] | None, typer.Option(help="A sentence to translate. May be repeated.")
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--input", "-i", help="A file of them, one a line.")
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="The translation to follow, one for each sentence; else the model's own."
        ),
    ] = None,
    other: Annotated[
        Path | None,
        typer.Option(
            "--with", metavar="MODEL", help="Another model, shown beside it on the same sentences."
        ),
    ] = None,
    beam: Annotated[
        int | None, typer.Option(min=1, help="Hypotheses of the search; else as the model says.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto: a GPU if there is one.")] = "cpu",
) -> None:
    """Write one HTML file with every attention weight of some sentences, to step through."""
    from kakehashi.commands.progress import progress
    from kakehashi.data.reading import write_bytes
    from kakehashi.errors import ConfigError
    from kakehashi.inference.translator import Translator
    from kakehashi.insight.explorer.page import page

    if output.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"{output}: a page's name ends in .html")
    sentences = _sentences(text or [], source)
    targets = _targets(target or [], len(sentences))
    folders = [model] if other is None else [model, other]
    translators = [Translator.load(folder, device) for folder in folders]
    names = _names(folders, translators)
    scenes: list[Scene] = []
    with progress("looking", "sentences", len(sentences)) as report:
        for number, (line, given) in enumerate(zip(sentences, targets, strict=True), 1):
            for translator, name in zip(translators, names, strict=True):
                scenes.append(_scene(translator, line, given, beam, name, number))
            report.advance()
    content = page(scenes)
    write_bytes(output, content)
    number_of = "1 sentence" if len(sentences) == 1 else f"{len(sentences):,} sentences"
    typer.echo(f"{output}: {number_of}, {len(content) / 1000:,.0f} kB", err=True)


def _scene(
    translator: "Translator",
    line: str,
    target: str | None,
    beam: int | None,
    name: str | None,
    number: int,
) -> "Scene":
    from kakehashi.errors import DataError
    from kakehashi.insight.explorer.component import scene

    try:
        return scene(translator, line, target, beam=beam, name=name)
    except DataError as error:
        raise DataError(f"sentence {number:,}: {error}") from error


def _sentences(given: Sequence[str], path: Path | None) -> list[str]:
    from kakehashi.data.reading import is_blank, read_lines
    from kakehashi.errors import ConfigError, DataError

    if bool(given) == (path is not None):
        raise ConfigError("give the sentences either with --text, or in a file with -i")
    lines = list(given) if path is None else [one for one in read_lines(path) if not is_blank(one)]
    if not lines:
        raise DataError(
            f"{path} has no line with visible characters: there is nothing to translate"
        )
    if len(lines) > MOST:
        where = "--text" if path is None else path
        raise DataError(
            f"{where} gives {len(lines):,} sentences, and a page holds {MOST}: give fewer"
        )
    return lines


def _targets(given: Sequence[str], sentences: int) -> Sequence[str | None]:
    from kakehashi.errors import ConfigError

    if given and len(given) != sentences:
        raise ConfigError(
            f"{len(given):,} --target for {sentences:,} sentences: give one for each, or none"
        )
    return given or [None] * sentences


def _names(folders: Sequence[Path], translators: Sequence["Translator"]) -> list[str | None]:
    """Names that tell the models apart, where their kinds do not."""
    kinds = {translator.config.model.name for translator in translators}
    if len(kinds) == len(translators):
        return [None] * len(translators)
    return [f"{number}: {folder}" for number, folder in enumerate(folders, 1)]
