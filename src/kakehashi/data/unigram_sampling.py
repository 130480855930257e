"""Segmentations drawn from the unigram language model: subword regularisation (Kudo, 2018).

A segmentation x of a run has probability proportional to P(x)^alpha, P(x) the product of its
pieces' probabilities; all segmentations take part (l = infinity in the paper). Forward filtering,
backward sampling: the forward sums of the lattice, then pieces drawn from the run's end.

A runs of at most L characters, M characters in the longest piece.
"""

import numpy as np
import numpy.typing as npt

from kakehashi.data.subwords import Keys, Speller, uniform
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.data.trie import NONE, Ints

Floats = npt.NDArray[np.float64]


class UnigramSampling:
    """Draws segmentations of runs from P(x)^alpha."""

    def __init__(self, tokenizer: Tokenizer, speller: Speller, alpha: float) -> None:
        self._speller = speller
        # A place with NONE takes the last entry.
        self._scores = np.append(alpha * tokenizer.scores(), -np.inf)

    def draw(self, runs: Ints, lengths: Ints, keys: Keys) -> Ints:
        """As `Segmentation.draw`."""
        order = np.argsort(-lengths, kind="stable")
        runs, lengths, keys = runs[order], lengths[order], keys[order]
        pieces = self._speller.ending(runs)
        arcs = self._forward(pieces, lengths)
        drawn = np.full_like(runs, NONE)
        drawn[order] = _backward(pieces, arcs, lengths, keys)
        return drawn

    def _forward(self, pieces: Ints, lengths: Ints) -> Floats:
        """Cumulative probability [A, L, M] that a piece of at most m + 1 characters ends at l.

        Given that one ends there; runs come longest first.
        """
        n_runs, longest, reach = pieces.shape
        weights = self._scores[pieces]
        total = np.full((n_runs, reach + longest), -np.inf)
        """Log of the sum over all segmentations of the first l characters, at reach - 1 + l."""
        total[:, reach - 1] = 0.0
        for end in range(longest):
            n = int(np.searchsorted(-lengths, -end, side="left"))
            # Pieces of 1, 2, ... characters that end here start ever earlier.
            before = total[:n, end : end + reach][:, ::-1]
            weight = weights[:n, end] + before
            highest = weight.max(1, keepdims=True)
            # A cumulative sum adds in order, so that the reach does not change the result.
            summed = np.cumsum(np.exp(weight - highest), 1)
            total[:n, reach + end] = highest[:, 0] + np.log(summed[:, -1])
            weights[:n, end] = summed / summed[:, -1:]
        return weights


def _backward(pieces: Ints, arcs: Floats, lengths: Ints, keys: Keys) -> Ints:
    """Draw the last piece of each run, then the one before it, up to the start."""
    drawn = np.full(pieces.shape[:2], NONE)
    active, end = np.arange(len(lengths)), lengths.copy()
    while len(active):
        chance = uniform(keys[active], end)[:, None]
        size = (arcs[active, end - 1] <= chance).sum(1)
        piece = pieces[active, end - 1, size]
        end = end - size - 1
        drawn[active, end] = piece
        active, end = active[end > 0], end[end > 0]
    return drawn
