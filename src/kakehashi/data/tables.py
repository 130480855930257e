"""Rows of text tables: TSV, taken verbatim, and CSV, read by the rules of Python's `csv`.

TSV knows no quoting: TAB and the line's end mean something, all else is text. In CSV (RFC 4180) a
field may stand in double quotes, and then holds commas, line feeds and doubled quotes. In both,
`NA`, `null` and `007` are the text that they look like.
"""

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path

from kakehashi.errors import DataError

Fields = tuple[int, list[str]]
"""The line that a row starts on, counted from 1, and its fields."""


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

    Empty lines at the end mean nothing. Raises DataError for absent columns, with the line.
    """
    columns = (source_column, target_column)
    if all(column.isdecimal() for column in columns):
        source, target = (int(column) - 1 for column in columns)
        if min(source, target) < 0:
            raise DataError(f"{path}: columns are numbered from 1, not 0")
    else:
        _, header = next(rows, (1, []))
        source, target = (_place(path, header, column) for column in columns)
    needed = max(source, target) + 1
    empty = None
    for number, row in rows:
        if row == [""] and needed > 1:
            empty = empty or number
            continue
        if empty is not None or len(row) < needed:
            raise DataError(
                f"{path}, line {empty or number}: {0 if empty else len(row)} columns, column "
                f"{needed} is asked"
            )
        yield number, row[source], row[target]


def _place(path: str | Path, header: list[str], column: str) -> int:
    if column not in header:
        raise DataError(
            f"{path}, line 1: no column is named {column!r}; there are {', '.join(header)}"
        )
    return header.index(column)
