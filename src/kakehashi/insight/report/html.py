"""Small pieces of HTML. What is called text is escaped here; what is called html is as it is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

LONGEST = 1200
"""Characters of a sentence that are shown."""


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    text: str
    share: float | None = None
    """The length of a bar under it."""
    code: bool = False
    wide: bool = False
    """Words that want room on a phone, too."""


def sentence(text: str) -> str:
    """In its own direction of writing, white space kept; a very long one loses its end."""
    shown = text[:LONGEST]
    if len(text) > LONGEST:
        shown += f"… ({len(text) - LONGEST:,} characters more)"
    return f'<span class="sentence" dir="auto">{escape(shown)}</span>' if text else EMPTY


EMPTY = '<span class="nothing">(nothing)</span>'


Row = Sequence["Cell | str"]


def table(caption: str, head: Sequence[str], rows: Iterable[Row], name: str) -> str:
    """The first cell of a row is its heading; cells are text, or see ``Cell``.

    Args:
        caption: what the table shows.
        head: names of the columns.
        rows: cells, as many as columns.
        name: a word for the id by which its frame, which scrolls on a phone, is called.
    """
    columns = "".join(f'<th scope="col">{escape(column)}</th>' for column in head)
    body = "".join(f"<tr>{''.join(map(_cell, row, range(len(row))))}</tr>" for row in rows)
    return (
        f'<div class="wide" role="region" tabindex="0" aria-labelledby="{name}">'
        f'<table><caption id="{name}">{escape(caption)}</caption>'
        f"<thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(cell: Cell | str, place: int) -> str:
    if isinstance(cell, str):
        cell = Cell(cell)
    shown = f"<code>{escape(cell.text)}</code>" if cell.code else escape(cell.text)
    if place == 0:
        return f'<th scope="row">{shown}</th>'
    if cell.share is None:
        return f'<td class="words">{shown}</td>' if cell.wide else f"<td>{shown}</td>"
    width = 100 * min(max(cell.share, 0.0), 1.0)
    bar = (
        '<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{width:.1f}" height="8"/></svg>'
    )
    return f'<td class="measured">{shown}{bar}</td>'


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """A list of names and what is said of them; values are html."""
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{html}</dd></div>" for name, html in rows)
    return f'<dl class="facts">{items}</dl>'


def code(text: str, label: str) -> str:
    """A block of text as it is; it scrolls by itself."""
    said = escape(label, quote=True)
    return f'<pre tabindex="0" role="region" aria-label="{said}"><code>{escape(text)}</code></pre>'


def section(name: str, title: str, *html: str) -> str:
    """A part of the page, with the id that the contents name; empty parts are left out."""
    inside = "\n".join(part for part in html if part)
    return (
        f'<section aria-labelledby="{name}">\n<h2 id="{name}">{escape(title)}</h2>\n'
        f"{inside}\n</section>"
    )
