"""`kakehashi check`: what is wrong with a corpus, before anybody trains on it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from kakehashi.audit import Text
    from kakehashi.data.tokenizer import Tokenizer


def check(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE|TABLE|tatoeba|hub:NAME",
            help="Source sentences, or one file with both sides, the name of the corpus, or of a "
            "data set on the hub.",
        ),
    ],
    target: Annotated[
        Path | None, typer.Argument(metavar="[TARGET]", help="Their translations, line by line.")
    ] = None,
    source_language: Annotated[
        str | None, typer.Option(help="Code of the language; else what the file's name ends in.")
    ] = None,
    target_language: Annotated[str | None, typer.Option(help="Likewise.")] = None,
    source_column: Annotated[
        str | None, typer.Option(help="Of a table: number or name; else the language's code.")
    ] = None,
    target_column: Annotated[str | None, typer.Option(help="Likewise.")] = None,
    hub_name: Annotated[
        str | None, typer.Option(help="Of a data set on the hub: its configuration (subset).")
    ] = None,
    valid: Annotated[
        list[Path] | None,
        typer.Option(help="The validation set: a table, or twice, source and then target."),
    ] = None,
    test: Annotated[list[Path] | None, typer.Option(help="The test set, likewise.")] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="A model folder, or a SentencePiece model.")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write the findings here, too.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write them as one page, too.")] = None,
    languages: Annotated[
        bool, typer.Option("--languages/--no-languages", help="Identify languages (slow).")
    ] = True,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if there is an error or a warning.")
    ] = False,
    root: Annotated[Path, typer.Option(help="Where what is fetched is kept.")] = Path("data"),
) -> None:
    """Check a parallel corpus: misalignment, odd text, duplicates, languages, overlap of splits.

    Nothing is changed. Errors, warnings and notes go to standard output with examples.
    """
    from kakehashi.audit import audit
    from kakehashi.audit.files import HUB, read_hub, read_text
    from kakehashi.audit.page import page
    from kakehashi.audit.record import as_json
    from kakehashi.audit.terminal import print_audit
    from kakehashi.commands.exits import FAILED
    from kakehashi.commands.streams import output_stream

    codes = (source_language, target_language)
    columns = (source_column, target_column)
    pieces = None if tokenizer is None else _tokenizer(tokenizer)
    if source.startswith(HUB):
        splits = read_hub(source.removeprefix(HUB), hub_name, codes, columns, root)
    else:
        splits = {"train": _train(source, target, codes, columns, root)}
    first = next(iter(splits.values()))
    codes = (first.source_language or None, first.target_language or None)
    for name, files in (("valid", valid), ("test", test)):
        if files:
            splits[name] = read_text(name, files, codes, columns)
    with _saying() as say:
        found = audit(splits, tokenizer=pieces, identify=languages, say=say)
    for path, render in ((json, as_json), (html, page)):
        if path is not None:
            with output_stream(path) as output:
                output.stream.write(render(found))
    print_audit(found, sys.stdout)
    if strict and not found.clean:
        raise typer.Exit(FAILED)


def _train(
    source: str,
    target: Path | None,
    languages: tuple[str | None, str | None],
    columns: tuple[str | None, str | None],
    root: Path,
) -> "Text":
    from kakehashi.audit.files import CORPUS, read_corpus, read_text

    if source == CORPUS and target is None and not Path(source).is_file():
        return read_corpus(languages, root)
    files: list[str | Path] = [source] if target is None else [source, target]
    return read_text("train", files, languages, columns)


def _tokenizer(path: Path) -> "Tokenizer":
    """From a model folder, a run's folder, or the file itself."""
    from kakehashi.data.tokenizer import Tokenizer

    path = path.expanduser()
    for file in (path / "tokenizer.model", path / "model" / "tokenizer.model"):
        if file.is_file():
            return Tokenizer.load(file)
    return Tokenizer.load(path)


@contextmanager
def _saying() -> Iterator[Callable[[str], None]]:
    """Shows what is being done, on standard error, when somebody is looking."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status("reading") as status:
        yield status.update
