"""Sentences spelled out in characters, cut where no piece reaches across.

What subword sampling needs of a vocabulary, as flat arrays. Two neighbouring characters that stand
side by side in no piece of the vocabulary always end up in different pieces; between such cuts lie
the *runs* (words, mostly), and each run can be segmented by itself, many of them at once.

R sentences, T pieces, C characters, A runs of two characters or more, L the longest of them, V
vocabulary. A "character" is a piece of one character, or a piece that is never split: a byte, a
user-defined symbol, a reserved piece.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kakehashi.data.ranges import places_of
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.data.trie import NONE, Ints, Trie, lookup

Keys = npt.NDArray[np.uint64]


class Segmentation(Protocol):
    """A way to draw a segmentation of each run."""

    def draw(self, runs: Ints, lengths: Ints, keys: Keys) -> Ints:
        """Pieces [A, L] of runs [A, L] of characters, in order, with NONE in unused places.

        `lengths` [A] are the runs' characters; what lies behind them is NONE. The draw is a
        function of the run and its key alone.
        """
        ...


@dataclass(frozen=True)
class Runs:
    """Sentences in characters."""

    characters: Ints
    """[C], of all sentences in turn."""
    bounds: Ints
    """[R + 1]: sentence r is characters[bounds[r]:bounds[r + 1]]."""
    starts: Ints
    """[A]: where the runs start, among all characters."""
    lengths: Ints
    """[A]: their characters, two at least."""
    rows: Ints
    """[A]: the sentences that they belong to."""

    def groups(self) -> Iterator[tuple[Ints, Ints]]:
        """Runs of like length: their numbers, and their characters padded with NONE."""
        size = np.ceil(np.log2(self.lengths))
        for which in (np.flatnonzero(size == wanted) for wanted in np.unique(size)):
            lengths = self.lengths[which]
            columns = np.arange(lengths.max())[None, :]
            places = np.minimum(self.starts[which, None] + columns, len(self.characters) - 1)
            yield which, np.where(columns < lengths[:, None], self.characters[places], NONE)


class Speller:
    """Spells pieces out, and finds the runs."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.vocab_size = tokenizer.vocab_size
        pieces = tokenizer.pieces(range(self.vocab_size))
        ordinary = tokenizer.ordinary_pieces()
        number = {pieces[i]: i for i in ordinary}
        self.spelling: dict[int, list[int]] = {}
        """Each ordinary piece of two characters or more, in characters."""
        for i in ordinary:
            characters = [number.get(character, NONE) for character in pieces[i]]
            if len(characters) > 1 and NONE not in characters:
                self.spelling[i] = characters
        spelt = [self.spelling.get(i, [i]) for i in range(self.vocab_size)]
        self._counts = np.array([len(characters) for characters in spelt], np.int64)
        self._offsets = np.cumsum([0, *self._counts])
        self._characters = np.array([i for characters in spelt for i in characters], np.int64)
        self._trie = Trie(dict(enumerate(spelt)), self.vocab_size)
        self._neighbours = np.unique(
            [
                left * self.vocab_size + right
                for characters in self.spelling.values()
                for left, right in pairwise(characters)
            ]
            or [NONE]
        )

    def ending(self, runs: Ints) -> Ints:
        """As `Trie.ending`, of all pieces."""
        return self._trie.ending(runs)

    def runs(self, ids: Ints, offsets: Ints) -> Runs:
        """The sentences ids[offsets[r]:offsets[r + 1]] in characters; `ids` is [T]."""
        counts = self._counts[ids]
        characters = self._characters[places_of(self._offsets[ids], counts)]
        bounds = np.concatenate([[0], np.cumsum(counts)])[offsets]
        joined = np.zeros(len(characters) + 1, bool)
        """Whether a character belongs to the run of the one before it."""
        if len(characters) > 1:
            pairs = characters[:-1] * self.vocab_size + characters[1:]
            joined[1:-1] = lookup(self._neighbours, pairs)[1]
        joined[bounds] = False
        (starts,) = np.nonzero(~joined[:-1] & joined[1:])
        (stops,) = np.nonzero(joined[:-1] & ~joined[1:])
        rows = np.searchsorted(bounds, starts, side="right") - 1
        return Runs(characters, bounds, starts, stops - starts + 1, rows)


class Resegmenter:
    """Draws new segmentations of tokenised sentences."""

    def __init__(self, speller: Speller, segmentation: Segmentation) -> None:
        self._speller, self._segmentation = speller, segmentation

    def __call__(self, ids: Ints, offsets: Ints, keys: Keys) -> tuple[Ints, Ints]:
        """Other pieces of the sentences ids[offsets[r]:offsets[r + 1]], and their offsets [R + 1].

        Sentence r's are a function of its pieces and of keys[r] alone.
        """
        runs = self._speller.runs(ids, offsets)
        pieces = runs.characters.copy()
        within = (runs.starts - runs.bounds[runs.rows]).astype(np.uint64)
        run_keys = mixed(keys[runs.rows] + within)
        for which, characters in runs.groups():
            drawn = self._segmentation.draw(characters, runs.lengths[which], run_keys[which])
            row, column = np.nonzero(characters != NONE)
            pieces[runs.starts[which][row] + column] = drawn[row, column]
        used = pieces != NONE
        counted = np.concatenate([[0], np.cumsum(used)])
        return pieces[used], counted[runs.bounds]

    def possible(self, ids: Ints, offsets: Ints) -> Ints:
        """All pieces that the sentences can be drawn in, and perhaps others that occur in them."""
        runs = self._speller.runs(ids, offsets)
        found: Ints = np.unique(runs.characters)
        for _, characters in runs.groups():
            found = np.union1d(found, self._speller.ending(characters))
        pieces: Ints = found[found != NONE]
        return pieces


def mixed(words: Keys) -> Keys:
    """A bijection of 64-bit words that scatters neighbours: splitmix64 (Steele et al., 2014)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def uniform(keys: Keys, places: Ints) -> npt.NDArray[np.float64]:
    """Numbers in [0, 1), a function of (key, place) alone; the arguments broadcast."""
    words = mixed(keys + places.astype(np.uint64) * np.uint64(0xD1342543DE82EF95))
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def sentence_keys(rows: Ints, *numbers: int) -> Keys:
    """A key [R] for each sentence number in `rows` under `numbers` (seed, epoch and the like)."""
    key = np.zeros(1, np.uint64)
    for number in numbers:
        key = mixed(key ^ np.uint64(number & 0xFFFFFFFFFFFFFFFF))
    return mixed(key + rows.astype(np.uint64))
