"""All pieces of a vocabulary by their characters, to find those that occur in many texts at once.

A texts of at most L characters (see `kakehashi.data.subwords`), M characters in the longest piece.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
NONE = -1
"""No piece: what pads an array of piece numbers."""


class Trie:
    """Pieces by their characters, as one sorted array of (node, character) -> node."""

    def __init__(self, spelling: Mapping[int, Sequence[int]], vocab_size: int) -> None:
        """`spelling`: the characters of each piece, themselves numbered below `vocab_size`."""
        self._vocab_size = vocab_size
        children: dict[int, int] = {}
        terminal = [NONE]
        for piece, characters in spelling.items():
            node = 0
            for character in characters:
                node = children.setdefault(node * vocab_size + character, len(terminal))
                if node == len(terminal):
                    terminal.append(NONE)
            terminal[node] = piece
        self._keys = np.array(sorted(children), np.int64)
        self._children = np.array([children[int(key)] for key in self._keys], np.int64)
        self._terminal = np.array(terminal, np.int64)
        self._longest = max(map(len, spelling.values()))

    def ending(self, texts: Ints) -> Ints:
        """The pieces [A, L, M] of m + 1 characters that end at character l of `texts` [A, L].

        NONE where there is no such piece, and behind a text's end, where `texts` has NONE.
        """
        n_texts, longest = texts.shape
        pieces = np.full((n_texts, longest, min(self._longest, longest)), NONE)
        row, start = np.nonzero(texts != NONE)
        node = np.zeros(len(row), np.int64)
        for m in range(pieces.shape[2]):
            inside = start + m < longest
            row, start, node = row[inside], start[inside], node[inside]
            character = texts[row, start + m]
            places, found = lookup(self._keys, node * self._vocab_size + character)
            found &= character != NONE
            row, start, node = row[found], start[found], self._children[places[found]]
            pieces[row, start + m, m] = self._terminal[node]
        return pieces


def lookup(sorted_keys: Ints, keys: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Where each of `keys` stands in `sorted_keys`, and whether it does."""
    places = np.searchsorted(sorted_keys, keys)
    places = np.minimum(places, len(sorted_keys) - 1)
    return places, sorted_keys[places] == keys
