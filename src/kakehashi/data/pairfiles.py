"""Pairs from a user's files: two plain files, TSV, CSV, JSON lines, parquet; compressed or not."""

import json
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from kakehashi.data.arrow import column_texts
from kakehashi.data.pairs import Pairs
from kakehashi.data.reading import Watch, content_suffix, iter_lines, open_bytes
from kakehashi.data.tables import column_pairs, csv_rows, tsv_rows
from kakehashi.errors import DataError

SUFFIXES = (".tsv", ".csv", ".jsonl", ".parquet")

_ROWS_AT_A_TIME = 10_000

Row = tuple[int, str, str]
"""Line (from 1), source, target."""


def read_plain(source: str | Path, target: str | Path) -> Pairs:
    """The rows of `plain_rows` in memory; raises DataError when there are none."""
    return _collected(plain_rows(source, target), f"{source}, {target}")


def read_table(path: str | Path, source_column: str | None, target_column: str | None) -> Pairs:
    """The rows of `table_rows` in memory; raises DataError when there are none."""
    return _collected(table_rows(path, source_column, target_column), str(path))


def _collected(rows: Iterator[Row], origin: str) -> Pairs:
    kept = list(rows)
    if not kept:
        raise DataError(f"{origin}: there are no pairs in it")
    lines, sources, targets = zip(*kept, strict=True)
    return Pairs(list(sources), list(targets), origin, lines)


def plain_rows(source: str | Path, target: str | Path, watch: Watch | None = None) -> Iterator[Row]:
    """Line k of `source` with line k of `target`, as they are read.

    `watch` is told of every byte that is taken from the disk. Raises DataError at the end of the
    shorter file when the counts differ, naming both.
    """
    sources, targets = iter_lines(source, watch), iter_lines(target, watch)
    for number, (source_line, target_line) in enumerate(zip_longest(sources, targets), 1):
        if source_line is None or target_line is None:
            longer = number + sum(1 for _ in (targets if source_line is None else sources))
            counts = (number - 1, longer) if source_line is None else (longer, number - 1)
            raise DataError(
                f"{source} has {counts[0]:,} lines and {target} has {counts[1]:,}: line k of one "
                "must translate line k of the other"
            )
        yield number, source_line, target_line


def table_rows(
    path: str | Path,
    source_column: str | None,
    target_column: str | None,
    watch: Watch | None = None,
) -> Iterator[Row]:
    """Pairs of a .tsv, .csv, .jsonl or .parquet file (by suffix, before a compression's), in turn.

    Columns: for TSV and CSV numbers from 1, or names of a header line, by default 1 and 2;
    elsewhere fields, dotted when nested. `watch` is told of every byte that is taken from the disk.
    Raises DataError for other suffixes and absent columns.
    """
    suffix = content_suffix(path)
    if suffix in (".tsv", ".csv"):
        lines = iter_lines(path, watch)
        fields = tsv_rows(lines) if suffix == ".tsv" else csv_rows(lines, path)
        return column_pairs(path, fields, source_column or "1", target_column or "2")
    if suffix not in SUFFIXES:
        raise DataError(f"{path}: its name should end in one of {', '.join(SUFFIXES)}")
    if source_column is None or target_column is None:
        raise DataError(f"{path}: say which fields hold the two sides (data.source_column=...)")
    rows = _json_rows if suffix == ".jsonl" else _parquet_rows
    return rows(path, source_column, target_column, watch)


def _json_rows(
    path: str | Path, source_column: str, target_column: str, watch: Watch | None
) -> Iterator[Row]:
    blank: int | None = None
    for number, line in enumerate(iter_lines(path, watch), 1):
        if not line.strip():
            blank = blank or number  # at the end of the file they mean nothing
            continue
        if blank is not None:
            raise DataError(f"{path}, line {blank}: not JSON (a blank line)")
        where = f"{path}, line {number}"
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"{where}: not JSON ({error})") from error
        yield number, _field(record, source_column, where), _field(record, target_column, where)


def _field(record: Any, column: str, where: str) -> str:
    value = record
    for name in column.split("."):
        if not isinstance(value, dict) or name not in value:
            fields = ", ".join(value) if isinstance(value, dict) else repr(value)
            raise DataError(f"{where}: no field {column!r} (at {name!r} there is: {fields})")
        value = value[name]
    if not isinstance(value, str):
        raise DataError(f"{where}: field {column!r} holds {value!r}, not text")
    return value


def _parquet_rows(
    path: str | Path, source_column: str, target_column: str, watch: Watch | None
) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = [source_column, target_column]
    number = 0
    with open_bytes(path, watch) as stream:
        try:
            # Its table of contents is at the end, where most compressed files can't be entered.
            file = pq.ParquetFile(stream if stream.seekable() else pa.BufferReader(stream.read()))
            present = [column.path for column in file.schema]
            for column in columns:
                if column not in present:
                    raise DataError(f"{path}: no field {column!r}; there are {', '.join(present)}")
            for batch in file.iter_batches(batch_size=_ROWS_AT_A_TIME, columns=columns):
                table = pa.Table.from_batches([batch])
                # One level of nesting a time: translation {de, en} becomes translation.de and .en.
                while any(pa.types.is_struct(column.type) for column in table.schema):
                    table = table.flatten()
                sides = [column_texts(table, column, str(path), number) for column in columns]
                for pair in zip(*sides, strict=True):
                    number += 1
                    yield number, *pair
        except pa.ArrowException as error:
            raise DataError(f"{path} is not a parquet file, or is damaged: {error}") from error
