import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.data.batching import BatchSampler, FlatCorpus
from kakehashi.data.mixture import Mixture, temperature_weights
from kakehashi.errors import DataError

CORPORA = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30),
        st.floats(0.05, 3.5),
    ),
    min_size=1,
    max_size=4,
)


def mixture_of(corpora, seed: int = 0) -> tuple[Mixture, np.ndarray, list[np.ndarray]]:
    """The mixture, the lengths of all pairs, and the pairs of each corpus."""
    lengths = np.array([pair for pairs, _ in corpora for pair in pairs], np.int64).T
    ends = np.cumsum([len(pairs) for pairs, _ in corpora])
    rows = np.split(np.arange(lengths.shape[1]), ends[:-1])
    weights = [max(weight, 1 / len(pairs)) for pairs, weight in corpora]
    return Mixture(*lengths, rows, weights, seed), lengths, rows


@given(CORPORA, st.integers(0, 3), st.integers(1, 40))
def test_each_pair_comes_as_often_as_its_weight_says(corpora, seed: int, epochs: int) -> None:
    mixture, lengths, corpora_rows = mixture_of(corpora, seed)
    counts: Counter[int] = Counter()
    for epoch in range(epochs):
        rows = mixture.rows(epoch)
        assert np.all(lengths[0][rows] <= mixture.source_lengths)
        assert np.all(lengths[1][rows] <= mixture.target_lengths)
        once = Counter(rows.tolist())
        counts.update(once)
        for (pairs, weight), part, n in zip(
            corpora, corpora_rows, mixture.pairs_an_epoch, strict=True
        ):
            assert abs(n - max(weight, 1 / len(pairs)) * len(pairs)) <= 0.5 + 1e-9
            assert sum(once[i] for i in part.tolist()) == n
            # Without replacement: the times of two pairs in an epoch differ by one at most.
            least = math.floor(max(weight, 1 / len(pairs)))
            assert {once[i] for i in part.tolist()} <= {least, least + 1}
    for part, n in zip(corpora_rows, mixture.pairs_an_epoch, strict=True):
        for i in part.tolist():
            assert abs(counts[i] - epochs * n / len(part)) < 1 + 1e-9


def test_a_quarter_goes_through_all_in_four_epochs() -> None:
    random = np.random.default_rng(5)
    lengths = random.integers(1, 30, (2, 103 * 4))
    mixture = Mixture(*lengths, [np.arange(412)], [0.25], seed=8)
    quarters = [mixture.rows(epoch) for epoch in range(2, 6)]
    assert sorted(np.concatenate(quarters).tolist()) == list(range(412))
    # Each quarter has the lengths of the whole.
    means = [lengths[1][rows].mean() for rows in quarters]
    assert max(means) - min(means) < 0.5
    other = Mixture(*lengths, [np.arange(412)], [0.25], seed=9)
    assert set(other.rows(2).tolist()) != set(quarters[0].tolist())


@given(CORPORA, st.integers(10, 200), st.integers(1, 3))
def test_batches_keep_their_budget_and_their_number(corpora, budget: int, world_size: int) -> None:
    mixture, lengths, _ = mixture_of(corpora)
    drawn = []
    for rank in range(world_size):
        sampler = BatchSampler(
            mixture.source_lengths,
            mixture.target_lengths,
            batch_tokens=budget,
            draw=mixture.rows,
            rank=rank,
            world_size=world_size,
        )
        for epoch in range(3):
            sampler.set_epoch(epoch)
            batches = sampler.batches()
            assert len(batches) == len(sampler)
            for rows in batches:
                if len(rows) > 1:
                    row = lengths[0][rows].max() + lengths[1][rows].max() + 2
                    # of a share, less than a row more than the budget: the bounds are of picks
                    assert (len(rows) - (world_size > 1)) * row <= budget
            if epoch == 2:
                drawn += batches
    seen, epoch_rows = (
        Counter(map(int, rows)) for rows in (np.concatenate(drawn), mixture.rows(2))
    )
    assert seen == epoch_rows


def test_little_is_lost_to_padding(some_corpus: FlatCorpus) -> None:
    source, target = some_corpus.source_lengths, some_corpus.target_lengths
    source, target = np.tile(source, 9), np.tile(target, 9)
    mixture = Mixture(source, target, [np.arange(len(source))], [0.4])
    rows = mixture.rows(1)
    bound = int(mixture.source_lengths.sum() + mixture.target_lengths.sum())
    real = int(source[rows].sum() + target[rows].sum())
    assert real <= bound < 1.05 * real


def test_a_weight_that_takes_nothing_is_refused() -> None:
    lengths = np.ones(5, np.int64)
    with pytest.raises(DataError, match=r"of 5 pairs a weight of 0\.05 takes none"):
        Mixture(lengths, lengths, [np.arange(5)], [0.05])


@given(st.lists(st.integers(1, 10**7), min_size=1, max_size=5), st.floats(1, 9))
def test_temperature_levels_the_shares(sizes: list[int], temperature: float) -> None:
    weights = temperature_weights(sizes, temperature)
    taken = [weight * size for weight, size in zip(weights, sizes, strict=True)]
    assert math.isclose(sum(taken), sum(sizes), rel_tol=1e-9)
    for size, share in zip(sizes, taken, strict=True):
        expected = (size / sizes[0]) ** (1 / temperature)
        assert math.isclose(share / taken[0], expected, rel_tol=1e-6)


def test_temperature_one_changes_nothing() -> None:
    assert temperature_weights([3, 500, 70], 1.0) == pytest.approx([1, 1, 1])
