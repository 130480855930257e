"""Weights between words: what the weights between their pieces come to."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from kakehashi.data.tokenizer import Span
from kakehashi.inference.links import word_spans


@dataclass(frozen=True)
class Words:
    """The words of a text, and which of them each piece of it spells."""

    labels: tuple[str, ...]
    of_piece: tuple[int, ...]

    def with_ends(self, first: str | None, last: str | None) -> "Words":
        """The same between two symbols, each a word of one piece; None: no symbol there."""
        before = () if first is None else (first,)
        after = () if last is None else (last,)
        labels = (*before, *self.labels, *after)
        places = tuple(word + len(before) for word in self.of_piece)
        return Words(labels, (*(0 for _ in before), *places, *(len(labels) - 1 for _ in after)))


def words_of(text: str, pieces: Sequence[Span]) -> Words:
    """The words that pieces spell: each piece is in one, and each word has a piece.

    Marks of punctuation are words of their own; in scripts without spaces, words end where pieces
    do. Words that a piece spells together count as one. A piece of mere spaces goes with the word
    after it.

    Args:
        text: what the pieces spell.
        pieces: where each stands in it, see ``Tokenizer.decode_spans``.
    """
    spans = word_spans(text, [end for _, end in pieces]) or [(0, len(text))]
    held = [_spelt(spans, piece) for piece in pieces]
    glued = {word for first, last in held for word in range(first + 1, last + 1)}
    groups = list(accumulate(int(word not in glued) for word in range(1, len(spans))))
    groups = [0, *groups]
    used = sorted({groups[first] for first, _ in held})
    labels = []
    for group in used:
        members = [span for span, own in zip(spans, groups, strict=True) if own == group]
        labels.append(text[members[0][0] : members[-1][1]].strip() or "·")
    return Words(tuple(labels), tuple(used.index(groups[first]) for first, _ in held))


def join(weights: npt.ArrayLike, rows: Words, columns: Words) -> npt.NDArray[np.float64]:
    """Weights [N M] between pieces as weights between the words they spell.

    A word is looked at as much as all its pieces together (a sum over columns), and looks as its
    pieces do on average (a mean over rows): rows stay distributions.
    """
    by_row, by_column = _members(rows), _members(columns)
    summed = np.asarray(weights, dtype=np.float64) @ by_column.T
    joined: npt.NDArray[np.float64] = by_row @ summed / by_row.sum(1, keepdims=True)
    return joined


def _spelt(spans: Sequence[Span], piece: Span) -> tuple[int, int]:
    """The first and the last word that a piece spells some of."""
    begin, end = piece
    # Pieces that spell a part of one character are of no width: they are where it begins.
    touched = [
        word
        for word, (start, stop) in enumerate(spans)
        if start < max(end, begin + 1) and begin < stop
    ]
    if touched:
        return touched[0], touched[-1]
    after = [word for word, (start, _) in enumerate(spans) if start >= begin]
    word = after[0] if after else len(spans) - 1
    return word, word


def _members(words: Words) -> npt.NDArray[np.float64]:
    """[words, pieces]: 1 where a piece belongs to a word."""
    numbers = np.arange(len(words.labels))
    members: npt.NDArray[np.bool_] = numbers[:, None] == np.array(words.of_piece)
    return members.astype(np.float64)
