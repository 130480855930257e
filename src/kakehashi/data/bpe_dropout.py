"""BPE-dropout: byte-pair encoding that sometimes passes a merge over (Provilkov et al., 2020).

Algorithm 1 of the paper, for each run (see `kakehashi.data.subwords`): in every step each merge
that could be made is left out with probability p, and the one of the highest priority among the
rest is made; the run is finished when none is left. p = 0 is plain BPE, p = 1 single characters.
The paper's unit is a word. A run is one where there are spaces; in scripts without them it is cut
short, because a whole sentence would have so many steps that hardly a merge stays undone.

A runs of at most L characters, all advanced together, one merge a step.
"""

import numpy as np

from kakehashi.data.subwords import Keys, Speller, uniform
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.data.trie import NONE, Ints, lookup

_NEVER = np.iinfo(np.int64).max
_STRIDE = 1 << 32


class BPEDropout:
    """Draws segmentations of runs by merging with dropout."""

    def __init__(self, tokenizer: Tokenizer, speller: Speller, dropout: float) -> None:
        self._dropout, self._vocab_size = dropout, tokenizer.vocab_size
        # The highest score is merged first.
        priority = np.unique(-tokenizer.scores(), return_inverse=True)[1]
        merges = _merges(tokenizer, speller)
        self._keys = np.array(sorted(merges) or [NONE], np.int64)
        self._merged = np.array([merges.get(int(key), NONE) for key in self._keys], np.int64)
        self._ranks = priority[self._merged].astype(np.int64)

    def draw(self, runs: Ints, lengths: Ints, keys: Keys) -> Ints:
        """As `Segmentation.draw`."""
        drawn = np.full_like(runs, NONE)
        active = np.arange(len(runs))
        symbols = runs
        merges = self._merge_of(symbols[:, :-1], symbols[:, 1:])
        for step in range(runs.shape[1]):
            rank = np.where(merges == NONE, _NEVER, self._ranks[merges])
            places = np.arange(rank.shape[1]) + step * _STRIDE
            rank[uniform(keys[active, None], places[None, :]) < self._dropout] = _NEVER
            at = rank.argmin(1) if rank.shape[1] else np.zeros(len(active), np.int64)
            row = np.arange(len(active))
            found = rank[row, at] != _NEVER if rank.shape[1] else np.zeros(len(active), bool)
            drawn[active[~found], : symbols.shape[1]] = symbols[~found]
            if not found.any():
                break
            active, symbols, merges, at = active[found], symbols[found], merges[found], at[found]
            symbols, merges = self._merge(symbols, merges, at)
        return drawn

    def _merge(self, symbols: Ints, merges: Ints, at: Ints) -> tuple[Ints, Ints]:
        """Put symbols `at` and `at` + 1 of each row together; what follows moves up by one."""
        row = np.arange(len(symbols))
        merged = self._merged[merges[row, at]]
        columns = np.arange(symbols.shape[1] - 1)[None, :]
        moved = columns + (columns > at[:, None])
        symbols = np.take_along_axis(symbols, moved, 1)
        symbols[row, at] = merged
        merges = np.take_along_axis(merges, moved[:, :-1], 1)
        left, right = at > 0, at < symbols.shape[1] - 1
        for rows, first in ((row[left], at[left] - 1), (row[right], at[right])):
            merges[rows, first] = self._merge_of(symbols[rows, first], symbols[rows, first + 1])
        return symbols, merges

    def _merge_of(self, left: Ints, right: Ints) -> Ints:
        """The number of the merge of each two neighbours, or NONE."""
        places, found = lookup(self._keys, left * self._vocab_size + right)
        return np.where(found & (right != NONE), places, NONE)


def _merges(tokenizer: Tokenizer, speller: Speller) -> dict[int, int]:
    """All merges: left * V + right -> the piece that the two make.

    As SentencePiece does it: any two pieces merge whose strings together are a piece.
    """
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    number = {pieces[i]: i for i in tokenizer.ordinary_pieces()}
    merges: dict[int, int] = {}
    for piece in speller.spelling:
        text = pieces[piece]
        for cut in range(1, len(text)):
            left, right = number.get(text[:cut]), number.get(text[cut:])
            if left is not None and right is not None:
                merges[left * tokenizer.vocab_size + right] = piece
    return merges
