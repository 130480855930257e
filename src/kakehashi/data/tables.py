"""Rows of text tables: TSV, taken verbatim, and CSV, read by the rules of Python's `csv`.

TSV knows no quoting: TAB and the line's end mean something, all else is text. In CSV (RFC 4180) a
field may stand in double quotes, and then holds commas, line feeds and doubled quotes. In both,
`NA`, `null` and `007` are the text that they look like, and all rows have as many columns as the
first: another number means that a separator inside a text has cut it in two.
"""

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path

from kakehashi.data.reading import content_suffix
from kakehashi.errors import DataError

Fields = tuple[int, list[str]]
"""The line that a row starts on, counted from 1, and its fields."""

_CAUSES = {
    ".tsv": "a TAB inside a text separates columns too",
    ".csv": "a text with a comma stands in double quotes, right after the comma before it",
}


def tsv_rows(lines: Iterable[str]) -> Iterator[Fields]:
    """The rows of a TSV file."""
    return ((number, line.split("\t")) for number, line in enumerate(lines, 1))


def csv_rows(lines: Iterable[str], path: str | Path) -> Iterator[Fields]:
    """The rows of a CSV file; one with a line feed in quotes takes several of `lines`.

    Raises DataError, with the line that the row starts on, for what isn't CSV.
    """
    reader = csv.reader((f"{line}\n" for line in lines), strict=True)
    while True:
        start = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise DataError(
                f"{path}, line {start}: not CSV ({error}); a field with a comma, a quote or a "
                'line break stands in double quotes, with each quote in it doubled: "say ""hi"""'
            ) from error
        if row is None:
            return
        yield start, row or [""]


def column_pairs(
    path: str | Path, rows: Iterator[Fields], source_column: str, target_column: str
) -> Iterator[tuple[int, str, str]]:
    """Line, source and target of each row: two columns, by number from 1 or by a header's names.

    Empty lines at the end mean nothing. Raises DataError, with the line, for absent columns and for
    a row that has not as many columns as the first.
    """
    columns = (source_column, target_column)
    first, width = 1, 0
    if all(column.isdecimal() for column in columns):
        source, target = (int(column) - 1 for column in columns)
        if min(source, target) < 0:
            raise DataError(f"{path}: columns are numbered from 1, not 0")
    else:
        first, header = next(rows, (1, []))
        source, target = (_place(path, header, column) for column in columns)
        width = len(header)
    needed = max(source, target) + 1
    empty = None
    for number, row in rows:
        if row == [""] and max(needed, width) > 1:
            empty = empty or number
            continue
        if not width:
            first, width = number, len(row)
        if width < needed:
            raise DataError(f"{path}, line {number}: {_columns(width)}, column {needed} is asked")
        if empty is not None or len(row) != width:
            raise DataError(
                f"{path}, line {empty or number}: {_columns(0 if empty else len(row))}, where line "
                f"{first} has {width}; mend the line ({_CAUSES[content_suffix(path)]})"
            )
        yield number, row[source], row[target]


def _place(path: str | Path, header: list[str], column: str) -> int:
    if column not in header:
        raise DataError(
            f"{path}, line 1: no column is named {column!r}; there are {', '.join(header)}"
        )
    return header.index(column)


def _columns(n: int) -> str:
    return f"{n} column{'s'[: n != 1]}"
