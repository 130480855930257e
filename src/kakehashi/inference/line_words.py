"""Which words of a line a piece is in. Words are what white space divides, counted from 0."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from kakehashi.data.tokenizer import SPACE, Span
from kakehashi.inference.translation import one_line

NONE = -1
"""In place of a word's number, for a character between words."""
_WITHIN, _GONE = 0, -2


def piece_words(
    pieces: Sequence[str], spans: Sequence[Span], words: Sequence[int]
) -> list[tuple[int, ...]]:
    """The words that each piece is in; a piece of mere spaces goes with the word right after it.

    Args:
        pieces: as ``Tokenizer.pieces`` writes them.
        spans: their places in a text; a span of no width stands for the character it is at.
        words: the word that each character of the text is in.
    """
    found: list[tuple[int, ...]] = []
    for piece, (begin, end) in zip(pieces, spans, strict=True):
        first = begin if piece.strip(SPACE) else end
        held = words[first : max(end, first + 1)]
        found.append(tuple(sorted({word for word in held if word != NONE})))
    return found


def line_words(line: str) -> list[int]:
    """The word that each character of a line is in, of ``line.split()``."""
    return _numbered(NONE if character.isspace() else _WITHIN for character in line)


def written_words(text: str) -> list[int]:
    """The word that each character of what a model wrote is in, of ``one_line(text).split()``."""
    return _numbered(map(_role, text))


@lru_cache(4096)
def _role(character: str) -> int:
    """What becomes of a character on one line: it is kept, divides words, or is left out."""
    made = one_line(f".{character}.")
    if made == "..":
        return _GONE
    return _WITHIN if len(made.split()) == 1 else NONE


def _numbered(roles: Iterable[int]) -> list[int]:
    numbers: list[int] = []
    word, inside = NONE, False
    for role in roles:
        if role == _WITHIN and not inside:
            word += 1
        if role != _GONE:
            inside = role == _WITHIN
        numbers.append(word if role == _WITHIN else NONE)
    return numbers
