"""`kakehashi score`: how probable a model finds translations that it is given."""

from collections import deque
from collections.abc import Iterator
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from kakehashi.commands import searching as given
from kakehashi.commands.parallel import Output, count_pairs, line_pairs, remembered
from kakehashi.commands.translate import Format
from kakehashi.errors import DataError

if TYPE_CHECKING:
    from kakehashi.inference.scoring import Scored


class Given(NamedTuple):
    """A line and a translation of it, and the pieces of both where those are given too."""

    source: str
    target: str
    pieces: tuple[list[str], list[str]] = ([], [])


def score(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model or run folder.")],
    source: Annotated[Path | None, typer.Option(help="File of source text.")] = None,
    target: Annotated[
        Path | None, typer.Option(help="File of translations, a line for each line.")
    ] = None,
    translations: Annotated[
        Path | None,
        typer.Option(
            help="Instead of both: what `translate --format jsonl` wrote, scored by its own pieces."
        ),
    ] = None,
    output: Output = None,
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            help="text: log probability and perplexity, a tab between. jsonl: of every piece.",
        ),
    ] = Format.text,
    others: given.Together = None,
    batch_size: given.BatchSize = None,
    threads: given.Threads = None,
    device: given.Device = "cpu",
    engine: given.Engine = given.EngineName.torch,
) -> None:
    """Score given translations: log probability and perplexity of each line.

    Natural logarithm of the whole line, its end counted; perplexity is per piece. Those of all
    lines together are said on stderr.
    """
    from kakehashi.commands.progress import progress
    from kakehashi.commands.requests import json_line
    from kakehashi.commands.streams import count_lines, output_stream, write_text

    pairs: Iterator[Given]
    if translations is not None and source is None and target is None:
        total, pairs = count_lines(translations), _from_json(translations)
    elif source is not None and target is not None and translations is None:
        total = count_pairs(source, target)
        pairs = (Given(*pair) for pair in line_pairs(source, target))
    else:
        raise typer.BadParameter("give --source and --target, or --translations alone")
    kept = deque[Given]()
    lines, pieces, log_probability = 0, 0, 0.0
    with output_stream(output) as stream:
        translator = given.load_translator([model, *(others or ())], device, threads, engine)
        asked = remembered(pairs, kept)
        if translations is None:
            results = translator.score(((p.source, p.target) for p in asked), batch_size)
        else:
            results = translator.score_tokens((p.pieces for p in asked), batch_size)
        with progress("scoring", "lines", total, show=output is not None) as report:
            for lines, scored in enumerate(results, 1):
                pieces += len(scored.tokens)
                log_probability += scored.log_probability
                row = f"{scored.log_probability:.6f}\t{scored.perplexity:.6f}"
                pair = kept.popleft()
                if form is Format.jsonl:
                    row = json_line(_record(lines, pair, scored))
                write_text(stream, [row])
                report.advance()
    perplexity = exp(-log_probability / max(1, pieces))
    typer.echo(
        f"{lines:,} lines, {pieces:,} pieces: log probability {log_probability:,.4f}, perplexity "
        f"{perplexity:,.4f} per piece",
        err=True,
    )


def _record(number: int, pair: Given, scored: "Scored") -> dict[str, Any]:
    """What is told of a line; the keys are described in the user's guide."""
    return {
        "line": number,
        "source": pair.source,
        "target": pair.target,
        "log_probability": scored.log_probability,
        "perplexity": scored.perplexity,
        "tokens": scored.tokens,
        "token_log_probabilities": scored.token_log_probabilities,
        "source_tokens": scored.source_tokens,
    }


def _from_json(path: Path) -> Iterator[Given]:
    """The translations in a file that `translate --format jsonl` wrote.

    Raises:
        DataError: with the line that is something else.
    """
    from kakehashi.commands.requests import is_list_of_texts, is_text, json_object
    from kakehashi.commands.streams import input_lines

    kinds = {
        "source": is_text,
        "translation": is_text,
        "source_tokens": is_list_of_texts,
        "tokens": is_list_of_texts,
    }
    for number, line in enumerate(input_lines(path), 1):
        found = json_object(line, f"{path}, line {number}")
        for key, fits in kinds.items():
            if key not in found or not fits(found[key]):
                raise DataError(
                    f"{path}, line {number} is not what `kakehashi translate --format jsonl` "
                    f'writes: "{key}" is missing or of another kind'
                )
        pieces = found["source_tokens"], found["tokens"]
        ended = pieces[1].count("</s>") + (pieces[1][-1:] != ["</s>"])
        if pieces[0] and ended != pieces[0].count("</s>"):
            raise DataError(
                f"{path}, line {number} was translated in {pieces[0].count('</s>')} parts, and one "
                "did not come to an end, so that it cannot be told from the next: leave the line "
                "out, or score texts with --source and --target"
            )
        yield Given(found["source"], found["translation"], pieces)
