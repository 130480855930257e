"""Which words of a line a piece is in. Words are what white space divides, counted from 0."""

from collections.abc import Sequence

from kakehashi.data.tokenizer import SPACE, Span

NONE = -1
"""In place of a word's number, for a character between words."""


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
    numbers: list[int] = []
    word, inside = NONE, False
    for character in line:
        begun, inside = inside, not character.isspace()
        word += inside and not begun
        numbers.append(word if inside else NONE)
    return numbers
