"""Pairs from a user's files: two plain files, TSV, CSV, JSON lines, parquet; compressed or not."""

import json
from pathlib import Path
from typing import Any

from kakehashi.data.pairs import Pairs
from kakehashi.data.reading import content_suffix, iter_lines, open_bytes, read_lines
from kakehashi.data.tables import column_pairs, csv_rows, tsv_rows
from kakehashi.errors import DataError

SUFFIXES = (".tsv", ".csv", ".jsonl", ".parquet")


def read_plain(source: str | Path, target: str | Path) -> Pairs:
    """Line k of `source` with line k of `target`.

    Raises DataError when the counts differ (naming both), or when there are no lines.
    """
    sources, targets = read_lines(source), read_lines(target)
    if len(sources) != len(targets):
        raise DataError(
            f"{source} has {len(sources):,} lines and {target} has {len(targets):,}: line k of one "
            "must translate line k of the other"
        )
    return _not_empty(Pairs(sources, targets, f"{source}, {target}"))


def read_table(path: str | Path, source_column: str | None, target_column: str | None) -> Pairs:
    """Pairs from a .tsv, .csv, .jsonl or .parquet file (by suffix, before a compression's).

    Columns: for TSV and CSV numbers from 1, or names of a header line, by default 1 and 2;
    elsewhere fields, dotted when nested. Raises DataError for other suffixes, absent columns and
    no pairs.
    """
    suffix = content_suffix(path)
    if suffix in (".tsv", ".csv"):
        lines = iter_lines(path)
        rows = tsv_rows(lines) if suffix == ".tsv" else csv_rows(lines, path)
        pairs = list(column_pairs(path, rows, source_column or "1", target_column or "2"))
        sides = [pair[1] for pair in pairs], [pair[2] for pair in pairs]
        return _not_empty(Pairs(*sides, str(path), [pair[0] for pair in pairs]))
    if suffix not in SUFFIXES:
        raise DataError(f"{path}: its name should end in one of {', '.join(SUFFIXES)}")
    if source_column is None or target_column is None:
        raise DataError(f"{path}: say which fields hold the two sides (data.source_column=...)")
    read = _read_json_lines if suffix == ".jsonl" else _read_parquet
    return _not_empty(read(path, source_column, target_column))


def _not_empty(pairs: Pairs) -> Pairs:
    if not len(pairs):
        raise DataError(f"{pairs.origin}: there are no pairs in it")
    return pairs


def _read_json_lines(path: str | Path, source_column: str, target_column: str) -> Pairs:
    lines = read_lines(path)
    while lines and not lines[-1].strip():
        lines.pop()
    source, target = [], []
    for number, line in enumerate(lines, 1):
        where = f"{path}, line {number}"
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"{where}: not JSON ({error})") from error
        source.append(_field(record, source_column, where))
        target.append(_field(record, target_column, where))
    return Pairs(source, target, str(path))


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


def _read_parquet(path: str | Path, source_column: str, target_column: str) -> Pairs:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_bytes(path) as stream:
        try:
            file = pq.ParquetFile(stream)
            present = [column.path for column in file.schema]
            for column in (source_column, target_column):
                if column not in present:
                    raise DataError(f"{path}: no field {column!r}; there are {', '.join(present)}")
            table = file.read(columns=[source_column, target_column])
            # One level of nesting a time: translation {de, en} becomes translation.de and .en.
            while any(pa.types.is_struct(column.type) for column in table.schema):
                table = table.flatten()
        except pa.ArrowException as error:
            raise DataError(f"{path} is not a parquet file, or is damaged: {error}") from error
    sides = [table.column(column).to_pylist() for column in (source_column, target_column)]
    for side, column in zip(sides, (source_column, target_column), strict=True):
        for number, value in enumerate(side, 1):
            if not isinstance(value, str):
                raise DataError(f"{path}, row {number}: field {column!r} is {value!r}, not text")
    return Pairs(sides[0], sides[1], str(path))
