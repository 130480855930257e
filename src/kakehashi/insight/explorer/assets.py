"""The viewer's style and script, for pages of every kind; without torch, which is slow to load."""

from importlib.resources import files


def _read(name: str) -> str:
    return files("kakehashi.insight.explorer").joinpath(name).read_text("utf-8")


STYLE = _read("viewer.css")
"""Everything in it concerns an ``.attention-viewer`` and what is inside of it."""
SCRIPT = _read("viewer.js")
"""Runs by itself, and defines ``attentionViewer``."""
PAGE_STYLE = _read("page.css")
"""Of the page that ``kakehashi explore`` writes."""
