"""Pieces put together to what a reader takes for words."""

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kakehashi.data.tokenizer import readable

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_SPACE = "\u2581"
_END = "</s>"


@dataclass(frozen=True)
class Word:
    """A word of a line."""

    text: str
    pieces: tuple[int, ...]
    """Where its pieces stand among those of the line."""


def words(pieces: Sequence[str], *, spaced: bool) -> list[Word]:
    """The words of a line; punctuation after a word stands by itself.

    Args:
        pieces: of a line; EOS, also between its parts, belongs to no word.
        spaced: whether the language puts spaces between words. Where it does not, every piece is
            one (the bytes of a character together).
    """
    found: list[Word] = []
    start = 0
    ends = [at for at, piece in enumerate(pieces) if piece == _END]
    for end in (*ends, len(pieces)):
        part = pieces[start:end]
        for unit in units(part, spaced=spaced):
            text = spelt([part[i] for i in unit])
            if text:
                found.append(Word(text, tuple(start + i for i in unit)))
        start = end + 1
    return found


def word_pairs(
    pairs: Collection[tuple[int, int]], sources: Sequence[Word], targets: Sequence[Word]
) -> list[tuple[int, int]]:
    """Which words belong together, when some of their pieces do: source and target, from 0."""
    of_source = {piece: at for at, word in enumerate(sources) for piece in word.pieces}
    of_target = {piece: at for at, word in enumerate(targets) for piece in word.pieces}
    found = {(of_source[i], of_target[j]) for i, j in pairs if i in of_source and j in of_target}
    return sorted(found, key=lambda pair: (pair[1], pair[0]))


def units(pieces: Sequence[str], *, spaced: bool) -> list[list[int]]:
    """The indices of the pieces of each word of one part, without EOS; see ``words``."""
    found: list[list[int]] = []
    for index, piece in enumerate(pieces):
        # The last four are enough, for so many bytes has a character.
        last = spelt([pieces[i] for i in found[-1][-4:]]) if found else "-"
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
