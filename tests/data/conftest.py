"""Token lengths and flat corpora drawn at random."""

from collections.abc import Sequence

import numpy as np
import pytest

from kakehashi.data.batching import FlatCorpus


def flat(source: Sequence[Sequence[int]], target: Sequence[Sequence[int]]) -> FlatCorpus:
    """A flat corpus of these rows."""
    arrays = []
    for side in (source, target):
        arrays.append(np.array([i for row in side for i in row], np.int32))
        arrays.append(np.cumsum([0, *map(len, side)], dtype=np.int64))
    return FlatCorpus(*arrays)


@pytest.fixture
def some_corpus() -> FlatCorpus:
    """211 pairs of 0 to 12 pieces, numbered from 4 on."""
    random = np.random.default_rng(7)
    rows = [random.integers(4, 97, random.integers(0, 13)).tolist() for _ in range(2 * 211)]
    return flat(rows[:211], rows[211:])
