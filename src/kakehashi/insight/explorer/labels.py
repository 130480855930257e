"""How a piece is written for people: every character seen, nothing that acts."""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from kakehashi.audit.visible import visible
from kakehashi.data.tokenizer import SPACE, Tokenizer, readable
from kakehashi.symbols import BOS, EOS, PAD, UNK

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_CONTROLS = {PAD: "padding", UNK: "unknown", BOS: "start", EOS: "end"}
_DIGITS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_LONGEST = 60
"""Characters of a piece that are shown."""


class Label(NamedTuple):
    """A piece as it is shown."""

    text: str
    spaced: bool = False
    """Whether a space stands before it."""
    control: bool = False
    """Whether it is none of the text's, but start, end or the unknown piece."""


def labels(tokenizer: Tokenizer, ids: Sequence[int]) -> list[Label]:
    """A label for each piece of a line.

    Where bytes spell a character, each of them shows the character, and which of its bytes it is.
    Invisible characters are shown by their numbers, a space that is a piece as a middle dot.
    """
    pieces = tokenizer.pieces(ids)
    spelt = _characters(pieces)
    return [
        Label(_CONTROLS[number], control=True)
        if number in _CONTROLS
        else Label(spelt.get(at) or _shown(readable(piece)), piece.startswith(SPACE))
        for at, (number, piece) in enumerate(zip(ids, pieces, strict=True))
    ]


def direction(text: str) -> str:
    """`rtl` or `ltr`: that of the first character that has one (rules P2 and P3 of UAX #9)."""
    for character in text:
        match unicodedata.bidirectional(character):
            case "R" | "AL":
                return "rtl"
            case "L":
                return "ltr"
    return "ltr"


def _shown(text: str) -> str:
    if text and unicodedata.category(text[0]).startswith("M"):
        text = "\u25cc" + text  # a mark needs something to stand on
    return visible(text, _LONGEST) or "·"


def _characters(pieces: Sequence[str]) -> dict[int, str]:
    """Labels of the pieces that are bytes, by their places."""
    found: dict[int, str] = {}
    start = 0
    while start < len(pieces):
        end = start
        while end < len(pieces) and _BYTE.fullmatch(pieces[end]):
            end += 1
        run = bytes(int(piece[3:5], 16) for piece in pieces[start:end])
        for character in run.decode("utf-8", "surrogateescape"):
            content = character.encode("utf-8", "surrogateescape")
            whole = not "\udc80" <= character <= "\udcff"
            for number in range(len(content)):
                text = _shown(character) if whole else f"0x{content[0]:02X}"
                which = str(number + 1).translate(_DIGITS) if len(content) > 1 else ""
                found[start] = text + which
                start += 1
        start = max(start, end) + 1
    return found
