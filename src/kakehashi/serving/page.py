"""The page: one text that holds its style and its script and asks the network for nothing else.

Among them are those of the viewer of attention, which `kakehashi explore` uses too.

The browser is told so. Its content policy allows this style and this script by their hashes, no
other ones, and requests to this service only: text from outside could not run even if it were
taken for a part of the page, which it never is (it goes in by ``textContent``).
"""

from importlib.resources import files

from kakehashi.insight.explorer.assets import SCRIPT, STYLE
from kakehashi.insight.policy import content_policy


def _read(name: str) -> str:
    return files("kakehashi.serving").joinpath("page", name).read_text("utf-8")


_STYLE, _SCRIPT = _read("style.css") + STYLE, SCRIPT + _read("script.js")

PAGE = (
    _read("index.html")
    .replace("<style></style>", f"<style>{_STYLE}</style>")
    .replace("<script></script>", f"<script>{_SCRIPT}</script>")
    .encode("utf-8")
)
"""UTF-8."""
CONTENT_POLICY = content_policy(
    _STYLE, _SCRIPT, "connect-src 'self'", "img-src data:", "frame-ancestors 'none'"
)
