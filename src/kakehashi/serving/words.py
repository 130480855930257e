"""Pieces put together to what a reader takes for words."""

import re
import unicodedata
from collections.abc import Sequence

from kakehashi.data.tokenizer import readable

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_SPACE = "\u2581"


def units(pieces: Sequence[str], *, spaced: bool) -> list[list[int]]:
    """The indices of the pieces of each word; punctuation after a word stands by itself.

    Args:
        pieces: of a line, without EOS.
        spaced: whether the language puts spaces between words. Where it does not, every piece is
            one (the bytes of a character together).
    """
    found: list[list[int]] = []
    for index, piece in enumerate(pieces):
        last = spelt([pieces[i] for i in found[-1]]) if found else "-"
        begun = not last or last.endswith("\ufffd")  # only a space yet, or half of a character
        alone = piece.startswith(_SPACE) if spaced else bool(spelt([piece]))
        if not found or (alone and not begun):
            found.append([index])
        else:
            found[-1].append(index)
    return [unit for word in found for unit in _peeled(word, pieces)] if spaced else found


def spelt(pieces: Sequence[str]) -> str:
    """The text of some pieces, without spaces around it."""
    content = b""
    for piece in pieces:
        byte = _BYTE.fullmatch(piece)
        content += bytes.fromhex(byte[1]) if byte else piece.encode("utf-8")
    return readable(content.decode("utf-8", "replace").replace(_SPACE, " ")).strip()


def _peeled(word: list[int], pieces: Sequence[str]) -> list[list[int]]:
    """A word, and the punctuation at its end."""
    end = len(word)
    while end > 1 and _punctuation(pieces[word[end - 1]]):
        end -= 1
    return [part for part in (word[:end], word[end:]) if part]


def _punctuation(text: str) -> bool:
    return all(unicodedata.category(character)[0] == "P" for character in text)
