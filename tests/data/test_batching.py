from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from kakehashi.data.batching import Batch, BatchSampler, FlatCorpus, cut_by_tokens, random_order
from kakehashi.errors import DataError
from kakehashi.symbols import BOS, EOS, PAD

LENGTHS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=80)


def sampler_of(lengths: list[tuple[int, int]], **settings) -> BatchSampler:
    source, target = (np.array(side, np.int64) for side in zip(*lengths, strict=True))
    return BatchSampler(source, target, **settings)


def padded_size(lengths: list[tuple[int, int]], rows: np.ndarray) -> int:
    longest = [max(lengths[i][side] for i in rows) + 1 for side in (0, 1)]
    return len(rows) * sum(longest)


def test_a_batch_is_the_pairs_padded() -> None:
    corpus = FlatCorpus(
        np.array([11, 12, 13, 21], np.int32),
        np.array([0, 3, 3, 4]),
        np.array([51, 61, 62, 71, 72], np.int32),
        np.array([0, 1, 3, 5]),
    )
    batch = corpus.batch(np.array([2, 0, 1]))
    assert batch.source.tolist() == [
        [21, EOS, PAD, PAD],
        [11, 12, 13, EOS],
        [EOS, PAD, PAD, PAD],
    ]
    assert batch.target.tolist() == [
        [BOS, 71, 72, EOS],
        [BOS, 51, EOS, PAD],
        [BOS, 61, 62, EOS],
    ]
    assert batch.index.tolist() == [2, 0, 1]
    assert batch.target_input.tolist() == [[BOS, 71, 72], [BOS, 51, EOS], [BOS, 61, 62]]
    assert batch.target_output.tolist() == [[71, 72, EOS], [51, EOS, PAD], [61, 62, EOS]]
    assert batch.target_allowed.tolist() == [[True] * 3, [True, True, False], [True] * 3]
    assert batch.source_allowed.sum(1).tolist() == [2, 4, 1]
    assert batch.n_target_tokens == 8
    assert batch.source.dtype == batch.target.dtype == batch.index.dtype == torch.int64


def test_a_batch_moves_to_another_device(some_corpus: FlatCorpus) -> None:
    batch = some_corpus.batch(np.arange(5))
    moved = batch.to("meta")
    assert isinstance(moved, Batch)
    assert {t.device.type for t in (moved.source, moved.target, moved.index)} == {"meta"}
    assert torch.equal(batch.to("cpu").source, batch.source)


def test_sides_of_unequal_length_are_refused() -> None:
    with pytest.raises(DataError, match="2 tokenised sources, 1 targets"):
        FlatCorpus(
            np.array([5, 6], np.int32),
            np.array([0, 1, 2]),
            np.array([7], np.int32),
            np.array([0, 1]),
        )


@given(LENGTHS, st.integers(1, 300))
def test_runs_are_as_long_as_the_budget_allows(lengths: list[tuple[int, int]], budget: int) -> None:
    source, target = (np.array(side, np.int64) for side in zip(*lengths, strict=True))
    bounds = cut_by_tokens(source, target, budget).tolist()
    assert bounds[0] == 0
    assert bounds[-1] == len(lengths)
    for start, end in pairwise(bounds):
        assert end == start + 1 or padded_size(lengths, np.arange(start, end)) <= budget
        if end < len(lengths):
            assert padded_size(lengths, np.arange(start, end + 1)) > budget


@given(LENGTHS, st.integers(50, 300), st.integers(0, 2), st.integers(0, 3))
def test_every_pair_is_in_one_batch_within_the_budget(
    lengths: list[tuple[int, int]], budget: int, seed: int, epoch: int
) -> None:
    sampler = sampler_of(lengths, batch_tokens=budget, seed=seed)
    sampler.set_epoch(epoch)
    batches = sampler.batches()
    assert len(batches) == len(sampler)
    assert sorted(i for rows in batches for i in rows) == list(range(len(lengths)))
    assert all(len(rows) == 1 or padded_size(lengths, rows) <= budget for rows in batches)


@given(LENGTHS, st.sampled_from([1, 2, 3, 5]), st.integers(20, 90), st.integers(0, 2))
def test_processes_share_each_batch_of_one_with_their_budgets_together(
    lengths: list[tuple[int, int]], world_size: int, budget: int, epoch: int
) -> None:
    alone = sampler_of(lengths, batch_tokens=world_size * budget, seed=3)
    alone.set_epoch(epoch)
    shares = []
    for rank in range(world_size):
        sampler = sampler_of(lengths, batch_tokens=budget, seed=3, rank=rank, world_size=world_size)
        sampler.set_epoch(epoch)
        shares.append(sampler.batches())
        assert len(shares[-1]) == len(sampler) == len(alone)
    for batch, *parts in zip(alone.batches(), *shares, strict=True):
        assert sorted(batch) == sorted(i for rows in parts for i in rows)
        numbers = [len(rows) for rows in parts]
        assert max(numbers) - min(numbers) <= 1
        if padded_size(lengths, batch) <= world_size * budget:
            row = padded_size(lengths, batch) // len(batch)
            for rows in parts:
                assert not len(rows) or padded_size(lengths, rows) < budget + row


def test_a_share_without_pairs_is_a_row_that_says_nothing(some_corpus: FlatCorpus) -> None:
    batch = some_corpus.batch(np.arange(0))
    assert batch.source.tolist() == [[EOS]]
    assert batch.target.tolist() == [[BOS, PAD]]
    assert batch.n_target_tokens == 0
    assert batch.index.tolist() == [-1]


def listed(sampler: BatchSampler) -> list[list[int]]:
    return [rows.tolist() for rows in sampler.batches()]


def test_the_order_is_a_function_of_seed_and_epoch(some_corpus: FlatCorpus) -> None:
    def sampler(seed: int, epoch: int) -> BatchSampler:
        lengths = some_corpus.source_lengths, some_corpus.target_lengths
        made = BatchSampler(*lengths, batch_tokens=151, seed=seed)
        made.set_epoch(epoch)
        return made

    assert listed(sampler(5, 2)) == listed(sampler(5, 2))
    used = sampler(5, 0)
    used.batches()
    used.set_epoch(2)
    assert listed(used) == listed(sampler(5, 2))
    orders = [listed(sampler(seed, epoch)) for seed in (5, 6) for epoch in (0, 1)]
    assert all(a != b for i, a in enumerate(orders) for b in orders[i + 1 :])
    # Not only the order of the batches, also what is in them changes from epoch to epoch.
    assert {tuple(sorted(rows)) for rows in orders[0]} != {tuple(sorted(r)) for r in orders[1]}


def test_orders_are_pinned() -> None:
    # A change here would change every run's batches: resumed runs would go wrong.
    assert random_order(7, seed=1, epoch=2, stream=0).tolist() == [1, 3, 0, 4, 2, 6, 5]
    assert sorted(random_order(97, 3, 5, 1).tolist()) == list(range(97))


def test_without_shuffling_the_order_stays(some_corpus: FlatCorpus) -> None:
    lengths = some_corpus.source_lengths, some_corpus.target_lengths
    sampler = BatchSampler(*lengths, batch_tokens=151, shuffle=False)
    first = listed(sampler)
    sampler.set_epoch(4)
    assert listed(sampler) == first
    longest = [int(some_corpus.target_lengths[rows].max()) for rows in first]
    assert longest == sorted(longest)


def test_only_the_rows_asked_for_take_part(some_corpus: FlatCorpus) -> None:
    rows = np.arange(3, 211, 7)
    lengths = some_corpus.source_lengths, some_corpus.target_lengths
    sampler = BatchSampler(*lengths, batch_tokens=151, rows=rows)
    assert sorted(i for batch in listed(sampler) for i in batch) == rows.tolist()


def test_little_is_padding_on_text_of_usual_lengths() -> None:
    random = np.random.default_rng(11)
    target = np.maximum(2, random.gamma(4, 3, 20_000)).astype(np.int64)
    source = np.maximum(1, target + random.normal(0, 0.2 * target)).astype(np.int64)
    batches = BatchSampler(source, target, batch_tokens=4096).batches()
    real = sum(int((source[rows] + target[rows] + 2).sum()) for rows in batches)
    padded = sum(padded_size(list(zip(source, target, strict=True)), rows) for rows in batches)
    assert real / padded > 0.92


@given(LENGTHS, st.data())
def test_a_saved_position_goes_on(lengths: list[tuple[int, int]], data: st.DataObject) -> None:
    sampler = sampler_of(lengths, batch_tokens=97, seed=3)
    assume(len(sampler) > 1)
    sampler.set_epoch(data.draw(st.integers(0, 3)))
    sampler.position = data.draw(st.integers(0, len(sampler) - 1))
    other = sampler_of(lengths, batch_tokens=97, seed=3)
    other.load_state_dict(sampler.state_dict())
    assert (other.epoch, other.position) == (sampler.epoch, sampler.position)
    other.set_epoch(sampler.epoch)
    assert other.position == sampler.position
    other.set_epoch(sampler.epoch + 1)
    assert other.position == 0


def test_a_finished_epoch_goes_on_with_the_next(some_corpus: FlatCorpus) -> None:
    lengths = some_corpus.source_lengths, some_corpus.target_lengths
    sampler = BatchSampler(*lengths, batch_tokens=151)
    state = sampler.state_dict()
    sampler.load_state_dict(state | {"epoch": 3, "position": len(sampler)})
    assert (sampler.epoch, sampler.position) == (4, 0)


def test_a_position_of_another_order_is_refused(some_corpus: FlatCorpus) -> None:
    lengths = some_corpus.source_lengths, some_corpus.target_lengths
    state = BatchSampler(*lengths, batch_tokens=151, seed=1).state_dict()
    with pytest.raises(DataError, match="seed 1"):
        BatchSampler(*lengths, batch_tokens=151, seed=2).load_state_dict(state)
    with pytest.raises(DataError, match="batches an epoch"):
        BatchSampler(*lengths, batch_tokens=97, seed=1).load_state_dict(state)
