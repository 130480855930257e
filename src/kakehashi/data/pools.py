"""Batches of pairs whose lengths differ from epoch to epoch.

Where pieces are drawn anew, so are the lengths, and batches made up by other lengths would be a
quarter padding. Drawing a whole epoch to sort it would take memory, and time before its first
batch. So an epoch is dealt into *pools*, each with some of all lengths; the pieces of a pool are
drawn together, sorted by their lengths and cut into a number of batches that never changes.
"""

import math
from collections.abc import Callable
from itertools import groupby
from typing import NamedTuple

import numpy as np

from kakehashi.data.batching import (
    Batch,
    Lengths,
    by_length,
    cut_by_tokens,
    random_order,
)
from kakehashi.data.position import EpochPosition
from kakehashi.data.sampled import SampledCorpus
from kakehashi.data.trie import Ints

POOL = 256
"""Batches in a pool, about."""
SLACK = 1.01
"""Batches for each one that the first epoch's first pool needs (and one more): pools are alike."""


class Share(NamedTuple):
    """Batches of a pool that are to be made."""

    pool: int
    batches: list[int]
    """Their numbers in the pool, in order."""


class PoolSampler(EpochPosition):
    """Which pairs each batch holds, as a pure function of (seed, epoch), for drawn pieces.

    The pairs are shuffled, sorted by their plain lengths and dealt out, one to each pool in turn.
    A pool's pairs are sorted by their drawn lengths, cut into `per_pool` runs that keep the token
    budget, and these are shuffled. (Should a pool ever need more batches than that, they outgrow
    the budget by as little as will do.) Processes share each batch as in `BatchSampler`.
    """

    def __init__(
        self,
        corpus: SampledCorpus,
        *,
        batch_tokens: int,
        rows: Ints,
        draw: Callable[[int], Ints] | None = None,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        """`rows`: the pairs to take part, or `draw`: as many of them, for an epoch."""
        super().__init__(seed=seed, rank=rank, world_size=world_size)
        rows = rows if draw is None else draw(0)
        batch_tokens *= world_size
        self.corpus, self._rows, self._batch_tokens = corpus, rows, batch_tokens
        self._draw = draw
        self._source, self._target = corpus.tokens.source_lengths, corpus.tokens.target_lengths
        in_order = rows[by_length(self._source[rows], self._target[rows])]
        plain = cut_by_tokens(self._source[in_order], self._target[in_order], batch_tokens)
        self.n_pools = max(1, round((len(plain) - 1) / POOL))
        self._dealt: tuple[int, Ints] | None = None
        """The latest epoch's pairs in the order in which they are dealt out."""
        first = self.pool(0, 0)
        drawn = corpus.draw(first, 0)
        lengths = drawn.source_lengths, drawn.target_lengths
        order = by_length(*lengths)
        needed = len(cut_by_tokens(lengths[0][order], lengths[1][order], batch_tokens)) - 1
        # The smallest pool has one pair less than the first.
        self.per_pool = max(1, min(math.ceil(SLACK * needed) + 1, len(rows) // self.n_pools))

    def __len__(self) -> int:
        return self.n_pools * self.per_pool

    def pool(self, number: int, epoch: int) -> Ints:
        """The pairs of a pool."""
        if self._dealt is None or self._dealt[0] != epoch:
            rows = self._rows if self._draw is None else self._draw(epoch)
            rows = rows[random_order(len(rows), self._seed, epoch, 0)]
            self._dealt = epoch, rows[by_length(self._source[rows], self._target[rows])]
        return self._dealt[1][number :: self.n_pools]

    def shares(self) -> list[Share]:
        """What is left of the epoch, pool by pool."""
        left = range(self.position, len(self))
        pools = groupby(left, key=lambda k: k // self.per_pool)
        return [Share(pool, [k % self.per_pool for k in batches]) for pool, batches in pools]

    def assemble(self, share: Share, epoch: int) -> list[Batch]:
        """Draw a pool, and make this process's part of some of its batches."""
        rows = self.pool(share.pool, epoch)
        drawn = self.corpus.draw(rows, epoch)
        source, target = drawn.source_lengths, drawn.target_lengths
        order = by_length(source, target)
        bounds = cut_into(source[order], target[order], self._batch_tokens, self.per_pool)
        shuffled = random_order(self.per_pool, self._seed, epoch, 1 + share.pool)
        batches = []
        for k in shuffled[share.batches].tolist():
            local = self.share(order[bounds[k] : bounds[k + 1]])
            batch = drawn.batch(local)
            if len(local):
                batch.index.copy_(batch.index.new_tensor(rows[local]))
            batches.append(batch)
        return batches


def cut_into(source: Lengths, target: Lengths, batch_tokens: int, n: int) -> Ints:
    """Cut pairs, in the order given, into exactly `n` runs, of at most `batch_tokens` if possible.

    Sizes as in `cut_by_tokens`; the largest is about as small as `n` runs allow. Returns the
    bounds [n + 1]. There are at least `n` pairs.
    """
    largest = len(source) * int(source.max(initial=0) + target.max(initial=0) + 2)
    low, high = 0, batch_tokens
    while len(bounds := cut_by_tokens(source, target, high)) - 1 > n and high < largest:
        low, high = high, 2 * high
    best = bounds
    while high - low > max(1, batch_tokens // 256):
        middle = (low + high) // 2
        bounds = cut_by_tokens(source, target, middle)
        if len(bounds) - 1 <= n:
            high, best = middle, bounds
        else:
            low = middle
    cuts: list[int] = best.tolist()
    while len(cuts) <= n:
        k = int(np.argmax(np.diff(cuts)))
        cuts.insert(k + 1, (cuts[k] + cuts[k + 1]) // 2)
    return np.asarray(cuts, dtype=np.int64)
