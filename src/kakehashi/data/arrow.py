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
    field = table.column_names[column] if isinstance(column, int) else column
    texts: list[str] = []
    for number, value in enumerate(table.column(column), before + 1):
        try:
            text = value.as_py()
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            raise DataError(
                f"{where}, row {number:,}: field {field!r} holds byte 0x{byte:02X}, which is not "
                "UTF-8; mend the row"
            ) from error
        if not isinstance(text, str):
            raise DataError(f"{where}, row {number:,}: field {field!r} is {text!r}, not text")
        texts.append(text)
    return texts
