"""Text as it may be shown: what is invisible, or would steer a terminal, becomes visible."""

import re

# Controls, format characters, odd spaces, private use, surrogates: everything that a reader could
# not see, and everything that a terminal or a browser would act upon.
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\xa0\xad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000"
    "\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef\ufeff\ufff9-\uffff\U000e0000-\U0010ffff]"
)
_ENDS = re.compile(r"\A +| +\Z|(?<= ) +")


def parts(text: str, limit: int) -> list[tuple[str, bool]]:
    """The text in runs, each with whether it stands for something that cannot be seen.

    At most about `limit` characters of the text, with `...` where it was cut.
    """
    cut = len(text) > limit
    text = text[:limit] if cut else text
    runs: list[tuple[str, bool]] = []
    position = 0
    marks = [(m.start(), m.end(), f"[U+{ord(m[0]):04X}]") for m in _HIDDEN.finditer(text)]
    marks += [(m.start(), m.end(), "·" * len(m[0])) for m in _ENDS.finditer(text)]
    for start, end, shown in sorted(marks):
        if start > position:
            runs.append((text[position:start], False))
        runs.append((shown, True))
        position = end
    if position < len(text):
        runs.append((text[position:], False))
    return [*runs, ("...", True)] if cut else runs


def visible(text: str, limit: int) -> str:
    """`parts` joined: a no-break space becomes [U+00A0], a space at the end a middle dot."""
    return "".join(shown for shown, _ in parts(text, limit))
