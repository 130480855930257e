"""Two files whose lines translate each other, read side by side."""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from kakehashi.commands.streams import count_lines, input_lines
from kakehashi.errors import DataError

T = TypeVar("T")
Source = Annotated[Path, typer.Option(help="File of source text.")]
Target = Annotated[Path, typer.Option(help="File of translations, a line for each line.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="File to write; else stdout.")]


def count_pairs(source: Path, target: Path) -> int | None:
    """How many lines both have; None where counting would use one up (a pipe).

    Raises:
        DataError: for a file that is missing or not text, and for unequal counts.
    """
    counts = count_lines(source), count_lines(target)
    if None not in counts and counts[0] != counts[1]:
        raise DataError(
            f"{source} has {counts[0]:,} lines and {target} has {counts[1]:,}; line k of one must "
            "translate line k of the other"
        )
    return counts[0]


def line_pairs(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """The lines of both, one pair at a time.

    Raises:
        DataError: when a file cannot be read, or one ends before the other.
    """
    both = zip_longest(input_lines(source), input_lines(target))
    for number, (line, translation) in enumerate(both, 1):
        if line is None or translation is None:
            ended, other = (source, target) if line is None else (target, source)
            raise DataError(
                f"{ended} has {number - 1:,} lines and {other} has more; line k of one must "
                "translate line k of the other"
            )
        yield line, translation


def remembered(items: Iterable[T], kept: deque[T]) -> Iterator[T]:
    """The items, each put into ``kept`` as it is asked for."""
    for item in items:
        kept.append(item)
        yield item
