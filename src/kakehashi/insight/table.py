"""A table as text, Markdown, TSV or JSON, by the ending of the file's name."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from kakehashi.errors import ConfigError

Value = str | int | float | None
Record = Mapping[str, Value]
FORMATS = (".tsv", ".md", ".json")


def check_format(path: Path) -> None:
    """Refuse a name with another ending.

    Raises:
        ConfigError: naming those there are.
    """
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(f"{path}: a table's name ends in {', '.join(FORMATS)}")


def table_lines(path: Path, records: Sequence[Record], facts: Record) -> list[str]:
    """The lines of a file.

    Args:
        path: its name, which decides the form.
        records: a row each, of the same columns; None is a cell that is empty.
        facts: what holds for all of them. TSV is rows alone.
    """
    names = list(records[0])
    match path.suffix.lower():
        case ".json":
            whole = {**facts, "rows": [dict(record) for record in records]}
            return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False).split("\n")
        case ".tsv":
            rows = [[_cell(record[name], 6) for name in names] for record in records]
            return ["\t".join(row) for row in [names, *rows]]
        case _:
            said = [f"{name}: {_cell(value, 2)}" for name, value in facts.items()]
            return [*markdown(names, records), "", *(f"- {line}" for line in said)]


def markdown(names: Sequence[str], records: Sequence[Record]) -> list[str]:
    """A pipe table, two digits after the point."""
    rows = [[_cell(record[name], 2) for name in names] for record in records]
    return [f"| {' | '.join(row)} |" for row in [list(names), ["---"] * len(names), *rows]]


def cells(records: Sequence[Record]) -> list[list[str]]:
    """Heads and rows for people, two digits after the point."""
    names = list(records[0])
    return [names, *([_cell(record[name], 2) for name in names] for record in records)]


def _cell(value: Value, digits: int) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    return str(value).replace("\t", " ").replace("|", "/")
