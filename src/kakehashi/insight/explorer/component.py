"""The viewer of attention as a part of any page: a style, a script, and its HTML.

A page that uses it has ``STYLE`` and ``SCRIPT`` once and a ``viewer`` wherever one is wanted. The
script asks the network for nothing, makes no code of text, and finds every ``.attention-viewer`` of
the page by itself; ``attentionViewer.show(element, data)`` fills one with a ``payload`` that came
later. All text goes in as text.
"""

from collections.abc import Sequence
from html import escape

from kakehashi.insight.explorer.assets import SCRIPT, STYLE
from kakehashi.insight.explorer.payload import embedded
from kakehashi.insight.explorer.scene import Scene, scene

__all__ = ["SCRIPT", "STYLE", "Scene", "scene", "viewer"]


def viewer(scenes: Sequence[Scene], identifier: str) -> str:
    """The HTML of one viewer.

    Args:
        scenes: one or more. Those with the same line by different models are one sentence.
        identifier: its id in the page.

    Raises:
        ValueError: without a scene.
    """
    if not scenes:
        raise ValueError("a viewer needs a scene")
    name = escape(identifier, quote=True)
    lines = dict.fromkeys((shown.line, shown.paths[0].text) for shown in scenes)
    plain = "".join(
        f'<p dir="auto">{_plain(line)}<br>{_plain(translation)}</p>' for line, translation in lines
    )
    return (
        f'<div class="attention-viewer" id="{name}">'
        f'<div class="plain">{plain}<noscript><p>The pictures need JavaScript.</p></noscript></div>'
        f'<script type="application/json">{embedded(scenes)}</script></div>'
    )


def _plain(text: str) -> str:
    """Text for a paragraph; a lone surrogate, which no file can hold, becomes U+FFFD."""
    return escape(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
