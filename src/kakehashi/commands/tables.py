"""Columns of text."""

from collections.abc import Sequence


def columns(rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> list[str]:
    """One line a row, cells padded to the width of their column; ``numbers`` stand to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if i in numbers else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
