"""The explorer as one file: the viewer in a page that may load nothing."""

from collections.abc import Sequence
from html import escape

from kakehashi.insight.explorer.assets import PAGE_STYLE, SCRIPT, STYLE
from kakehashi.insight.explorer.component import Scene, viewer
from kakehashi.insight.policy import content_policy

_POLICY = content_policy(PAGE_STYLE + STYLE, SCRIPT, "img-src data:")


def page(scenes: Sequence[Scene]) -> bytes:
    """The page in UTF-8, with all scenes in one viewer.

    Its content policy allows its own style and its own script, by their hashes, and no request.
    """
    first = scenes[0]
    models = " and ".join(dict.fromkeys(shown.model for shown in scenes))
    title = "Seeing it attend"
    text = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{title}: {escape(models)} · Kakehashi</title>\n"
        '<link rel="icon" href="data:,">\n'
        f"<style>{PAGE_STYLE}{STYLE}</style>\n</head>\n<body>\n<header><h1>{title}</h1>\n"
        f'<p class="languages">{escape(models)}, {escape(first.source_language)} → '
        f"{escape(first.target_language)}</p></header>\n"
        f"<main>\n{viewer(scenes, 'explorer')}\n</main>\n"
        "<footer><p>Made by <code>kakehashi explore</code>. This file asks the network for nothing."
        f"</p></footer>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )
    return text.encode("utf-8", "xmlcharrefreplace")
