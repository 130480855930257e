"""How much of each corpus an epoch holds, and which of its pairs: a function of (seed, epoch).

A corpus of n pairs and weight w is taken through floor(w) times, and k = round((w - floor(w)) n)
of its pairs once more. These k are picked by systematic sampling: the pairs, sorted by length,
stand on a circle, every (n / k)-th is picked, and from epoch to epoch the start moves on by k / n
of such a step. So no pair comes again before all have come, E epochs take each E k / n times, give
or take one, and the j-th pick of every epoch is about as long as the j-th of any other: batches are
made of picks, by the longest pair that each can be, and are the same number in every epoch.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kakehashi.data.batching import Lengths, by_length, random_order
from kakehashi.errors import DataError

Rows = npt.NDArray[np.int64]

_STREAM = 2
"""Numbers random orders; the sampler's own are 0 and 1."""


class Mixture:
    """Several corpora, one after the other in one split, and how often an epoch holds each."""

    def __init__(
        self,
        source_lengths: Lengths,
        target_lengths: Lengths,
        corpora: Sequence[Rows],
        weights: Sequence[float],
        seed: int = 0,
    ) -> None:
        """`corpora`: the pairs of each; lengths are those of the whole split.

        Raises DataError for a weight so small that an epoch would not hold a single pair.
        """
        self._corpora = [
            _Part(source_lengths, target_lengths, rows, weight, seed, _STREAM + number)
            for number, (rows, weight) in enumerate(zip(corpora, weights, strict=True))
        ]
        self.source_lengths = np.concatenate([part.bounds[0] for part in self._corpora])
        """Of each pick the most pieces that it can have, without specials."""
        self.target_lengths = np.concatenate([part.bounds[1] for part in self._corpora])
        self.pairs_an_epoch = [len(part.bounds[0]) for part in self._corpora]
        """Picks from each corpus."""

    def rows(self, epoch: int) -> Rows:
        """The pairs of an epoch, pick by pick."""
        return np.concatenate([part.rows(epoch) for part in self._corpora])


class _Part:
    def __init__(
        self,
        source_lengths: Lengths,
        target_lengths: Lengths,
        rows: Rows,
        weight: float,
        seed: int,
        stream: int,
    ) -> None:
        n, times = len(rows), int(weight)
        picked = round((weight - times) * n)
        if not times and not picked:
            raise DataError(
                f"of {n:,} pairs a weight of {weight:g} takes none in an epoch; raise it, or leave "
                "the corpus out"
            )
        shuffled = rows[random_order(n, seed, 0, stream)]
        self._sorted = shuffled[by_length(source_lengths[shuffled], target_lengths[shuffled])]
        self._whole, self._picked = np.tile(rows, times), picked
        self._start = int(random_order(n, seed, 1, stream)[0]) if picked else 0
        self.bounds = [
            np.concatenate([lengths[self._whole], self._longest(lengths[self._sorted])])
            for lengths in (source_lengths, target_lengths)
        ]

    def rows(self, epoch: int) -> Rows:
        n = len(self._sorted)
        start = (self._start + epoch * self._picked) % n
        return np.concatenate([self._whole, self._sorted[self._place(start)]])

    def _place(self, start: int) -> Rows:
        """Pick j, when the start has moved on by `start` / n of a step from 0 to n - 1."""
        steps = np.arange(self._picked, dtype=np.int64) * len(self._sorted)
        return (steps + start) // max(1, self._picked)

    def _longest(self, lengths: Lengths) -> Lengths:
        """For each pick the largest of the lengths at the places where it can fall."""
        if not self._picked:
            return np.empty(0, np.int64)
        first, last = self._place(0), self._place(len(lengths) - 1)
        runs = np.stack([first, last + 1], 1).ravel()
        # The last run ends at the array's end, where reduceat wants an element.
        return np.maximum.reduceat(np.append(lengths, 0), runs)[::2]


def temperature_weights(sizes: Sequence[int], temperature: float) -> list[float]:
    """Weights by which the corpora's shares of an epoch are as their sizes to the 1/temperature.

    The epoch stays as large as all corpora together. Arivazhagan et al. (2019), Massively
    Multilingual Neural Machine Translation in the Wild.
    """
    raised = [size ** (1 / temperature) for size in sizes]
    total = sum(sizes)
    return [total * share / sum(raised) / size for share, size in zip(raised, sizes, strict=True)]
