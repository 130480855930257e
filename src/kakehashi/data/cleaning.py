"""Named steps that change text: each takes a sentence and returns it mended, or as it was."""

import html
import re
import unicodedata
from collections.abc import Callable

_ENTITY = re.compile("&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
# White space among the controls separates words: it becomes a space, the rest vanishes. The joiners
# U+200C and U+200D stay, since Persian, Indian scripts and emoji are written with them.
_SEPARATORS = "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\u2028\u2029"
_BIDIRECTIONAL = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_INVISIBLE = (0xAD, 0x200B, 0x2060, 0xFEFF, *_BIDIRECTIONAL)
_CONTROLS: dict[int, str | None] = {
    **dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)), None),
    **dict.fromkeys(_INVISIBLE, None),
    **dict.fromkeys(map(ord, _SEPARATORS), " "),
}


def entities(text: str) -> str:
    """HTML's entities as the characters they stand for: ``&amp;`` is &, ``&#39;`` is '.

    Those that stand for a control, or for nothing, stay.
    """
    return _ENTITY.sub(_character, text) if "&" in text else text


def _character(entity: re.Match[str]) -> str:
    meant = html.unescape(entity[0])
    shown = meant == "\xa0" or (meant.isprintable() and meant != "\ufffd")
    return meant if shown else entity[0]


def controls(text: str) -> str:
    """Without controls, soft hyphens and invisible marks; tabs and line separators are spaces."""
    return text if text.isprintable() else text.translate(_CONTROLS)


def spaces(text: str) -> str:
    """Any run of white space as one space, and none at the ends."""
    return " ".join(text.split())


def nfc(text: str) -> str:
    """Unicode's normal form C: letters and their accents as one character where there is one."""
    return unicodedata.normalize("NFC", text)


STEPS: dict[str, Callable[[str], str]] = {
    "entities": entities,
    "controls": controls,
    "spaces": spaces,
    "strip": str.strip,
    "nfc": nfc,
}
