"""Columns of Arrow tables, which parquet files and the hub's data sets come as."""

from typing import TYPE_CHECKING

from kakehashi.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa


def column_texts(table: "pa.Table", column: int | str, where: str, before: int = 0) -> list[str]:
    """The texts of a column, of a table that `before` rows come before.

    Raises DataError, with `where` and the row from 1, for the first value that is not text and for
    text that is not UTF-8: nobody checks that when a parquet file is written or read.
    """
    values = table.column(column)
    try:
        texts: list[str] = values.to_pylist()
        if all(isinstance(text, str) for text in texts):
            return texts
    except UnicodeDecodeError:
        pass  # of which row, is found out below
    field = table.column_names[column] if isinstance(column, int) else column
    number, fault = next(found for found in enumerate(map(_fault, values), before + 1) if found[1])
    raise DataError(f"{where}, row {number:,}: field {field!r} {fault}")


def _fault(value: "pa.Scalar") -> str:
    """What is wrong with a value of a text column; empty if nothing is."""
    try:
        text = value.as_py()
    except UnicodeDecodeError as error:
        return f"holds byte 0x{error.object[error.start]:02X}, which is not UTF-8; mend the row"
    return "" if isinstance(text, str) else f"is {text!r}, not text"
