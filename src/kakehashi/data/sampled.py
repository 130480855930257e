"""A tokenised split whose pieces are drawn anew in every epoch.

Drawn pieces are a function of (seed, epoch, pair, side) alone: the same with any number of workers
and of processes, after a resume, and whatever other pairs are drawn with them.
"""

import math

import numpy as np
import numpy.typing as npt

from kakehashi.data.batching import FlatCorpus
from kakehashi.data.ranges import places_of
from kakehashi.data.subwords import Resegmenter, sentence_keys
from kakehashi.data.trie import Ints

AT_A_TIME = 2000
"""Sentences drawn together: enough for numpy, few enough for the caches."""


class SampledCorpus:
    """Draws the pieces of pairs."""

    def __init__(
        self,
        tokens: FlatCorpus,
        resegment: Resegmenter,
        *,
        seed: int,
        numbers: Ints | None = None,
    ) -> None:
        """`tokens` are the plain pieces; they spell the text that is segmented anew.

        `numbers` stand for the pairs where they are told apart, their rows if None.
        """
        self.tokens, self._resegment, self._seed = tokens, resegment, seed
        self._numbers = numbers
        self._source = (tokens.source_ids, tokens.source_offsets)
        self._target = (tokens.target_ids, tokens.target_offsets)

    def draw(self, rows: Ints, epoch: int) -> FlatCorpus:
        """The pairs `rows`, in that order, in the epoch's pieces."""
        source = self._draw(*self._source, rows, epoch, 0)
        return FlatCorpus(*source, *self._draw(*self._target, rows, epoch, 1))

    def growth(self, rows: Ints) -> tuple[float, float]:
        """Drawn pieces for each plain one, of sources and of targets, on some of the pairs."""
        some = rows[:: max(1, len(rows) // AT_A_TIME)]
        drawn = self.draw(some, 0)
        source, target = self.tokens.source_lengths[some], self.tokens.target_lengths[some]
        return (
            len(drawn.source_ids) / max(1, int(source.sum())),
            len(drawn.target_ids) / max(1, int(target.sum())),
        )

    def target_pieces(self, rows: Ints) -> Ints:
        """Every piece that the targets of `rows` can be drawn in; ascending."""
        found = np.array([], np.int64)
        for part in _parts(rows):
            found = np.union1d(found, self._resegment.possible(*_taken(*self._target, part)))
        return found

    def _draw(
        self, ids: npt.NDArray[np.int32], offsets: Ints, rows: Ints, epoch: int, side: int
    ) -> tuple[npt.NDArray[np.int32], Ints]:
        drawn, ends = [np.empty(0, np.int32)], [np.zeros(1, np.int64)]
        for part in _parts(rows):
            numbers = part if self._numbers is None else self._numbers[part]
            keys = sentence_keys(numbers, self._seed, epoch, side)
            pieces, bounds = self._resegment(*_taken(ids, offsets, part), keys)
            drawn.append(pieces.astype(np.int32))
            ends.append(ends[-1][-1] + bounds[1:])
        return np.concatenate(drawn), np.concatenate(ends)


def _parts(rows: Ints) -> list[Ints]:
    return np.array_split(rows, math.ceil(len(rows) / AT_A_TIME)) if len(rows) else []


def _taken(ids: npt.NDArray[np.int32], offsets: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """The pieces of some sentences, one after the other, and their offsets."""
    starts, lengths = offsets[rows], offsets[rows + 1] - offsets[rows]
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    return ids[places_of(starts, lengths)].astype(np.int64), bounds
