"""Batches of drawn pairs: all pairs, within the budget, the same however they are made."""

from collections.abc import Sequence
from itertools import islice, pairwise

import numpy as np
import pytest
from torch import Tensor

from kakehashi.data import pools as pools_module
from kakehashi.data.batching import Batch, BatchSampler, cut_by_tokens
from kakehashi.data.loader import PoolLoader
from kakehashi.data.pairs import Pairs
from kakehashi.data.pools import PoolSampler, cut_into
from kakehashi.data.sampled import SampledCorpus
from kakehashi.data.sampling import sampled
from kakehashi.data.tokenised import tokenise
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.data.tokenizer_config import SamplingConfig
from kakehashi.symbols import EOS

BUDGET = 211


@pytest.fixture(scope="module")
def corpus(small_corpus) -> SampledCorpus:
    pairs = Pairs(small_corpus.source, small_corpus.target)
    tokenizer = Tokenizer.train([*pairs.source, *pairs.target], vocab_size=600, kind="bpe")
    return sampled(tokenise(pairs, tokenizer), tokenizer, SamplingConfig(dropout=0.2), seed=1)


@pytest.fixture(autouse=True)
def _several_pools(monkeypatch) -> None:
    monkeypatch.setattr(pools_module, "POOL", 7)


def sampler_of(corpus: SampledCorpus, **settings) -> PoolSampler:
    settings = {"batch_tokens": BUDGET, "seed": 1, "rows": np.arange(len(corpus.tokens))} | settings
    return PoolSampler(corpus, **settings)


def plain(batch: Batch) -> tuple[list[int], list[list[int]], list[list[int]]]:
    return batch.index.tolist(), batch.source.tolist(), batch.target.tolist()


def epochs_of(loader: PoolLoader, n: int = 2) -> list[list]:
    return [[plain(batch) for batch in loader] for _ in range(n)]


def size(batch) -> int:
    _, source, target = batch
    return len(source) * (len(source[0]) + len(target[0]) - 1)


def test_every_epoch_holds_every_pair_once_in_as_many_batches(corpus: SampledCorpus) -> None:
    loader = PoolLoader(sampler_of(corpus))
    assert loader.sampler.n_pools > 2
    epochs = epochs_of(loader, 5)
    for batches in epochs:
        assert len(batches) == len(loader)
        assert sorted(k for index, *_ in batches for k in index) == list(range(132))
        assert max(map(size, batches)) <= BUDGET
    assert epochs[0] != epochs[1]
    orders = [[index for index, *_ in batches] for batches in epochs]
    assert orders[0] != orders[1]
    assert np.mean([size(batch) for batches in epochs for batch in batches]) > 0.7 * BUDGET


def test_batches_hold_the_epochs_pieces(corpus: SampledCorpus) -> None:
    loader = PoolLoader(sampler_of(corpus))
    loader.set_epoch(3)
    for batch in loader:
        expected = corpus.draw(batch.index.numpy(), 3).batch(np.arange(len(batch.index)))
        assert batch.source.tolist() == expected.source.tolist()
        assert batch.target.tolist() == expected.target.tolist()


def test_padding_is_less_than_by_plain_lengths(corpus: SampledCorpus) -> None:
    sampler = sampler_of(corpus)
    lengths = corpus.tokens.source_lengths, corpus.tokens.target_lengths
    by_plain_lengths = BatchSampler(*lengths, batch_tokens=BUDGET, seed=1).batches()
    plain_order = [corpus.draw(rows, 0) for rows in by_plain_lengths]
    waste = []
    for batches in (
        [flat.batch(np.arange(len(flat))) for flat in plain_order],
        list(PoolLoader(sampler)),
    ):
        places = sum(batch.source.numel() + batch.target_output.numel() for batch in batches)
        real = sum(int(b.source_allowed.sum()) + b.n_target_tokens for b in batches)
        waste.append(places / real)
    assert waste[1] < waste[0]


@pytest.mark.filterwarnings("ignore:This DataLoader will create 4:UserWarning")  # few cores
@pytest.mark.parametrize("workers", [0, 4])
def test_the_same_with_any_number_of_workers_and_after_a_stop(corpus, workers: int) -> None:
    expected = epochs_of(PoolLoader(sampler_of(corpus)))
    if workers:
        assert epochs_of(PoolLoader(sampler_of(corpus), workers=workers)) == expected
    for taken in (1, 9, len(expected[0])):
        stopped = PoolLoader(sampler_of(corpus), workers=workers)
        iterator = iter(stopped)
        first = [plain(batch) for batch in islice(iterator, taken)]
        state = stopped.state_dict()
        del iterator
        resumed = PoolLoader(sampler_of(corpus))
        resumed.load_state_dict(state)
        rest = [plain(batch) for batch in resumed]
        following = expected[0] if taken < len(expected[0]) else [*expected[0], *expected[1]]
        assert first + rest == following


def rows_of(batches: Sequence[Batch]) -> list[tuple[int, list[int], list[int]]]:
    """Number, source and target of each pair, padding and rows without a pair left out."""
    return sorted(
        (k, row[: row.index(EOS)], target[: target.index(EOS)])
        for batch in batches
        for k, row, target in zip(*map(Tensor.tolist, batch_parts(batch)), strict=True)
        if k >= 0
    )


def batch_parts(batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    return batch.index, batch.source, batch.target


@pytest.mark.parametrize("world_size", [2, 3, 5])
def test_processes_share_each_batch_of_one(corpus: SampledCorpus, world_size: int) -> None:
    alone = PoolLoader(sampler_of(corpus, batch_tokens=world_size * 60))
    shares = [
        PoolLoader(sampler_of(corpus, batch_tokens=60, rank=rank, world_size=world_size))
        for rank in range(world_size)
    ]
    for _ in range(2):
        for batch, *parts in zip(alone, *shares, strict=True):
            assert rows_of([batch]) == rows_of(parts)


def test_only_the_rows_given_take_part(corpus: SampledCorpus) -> None:
    rows = np.arange(3, 90, 2)
    batches = epochs_of(PoolLoader(sampler_of(corpus, rows=rows)), 1)[0]
    assert sorted(k for index, *_ in batches for k in index) == rows.tolist()


@pytest.mark.parametrize("n", [1, 2, 5])
def test_very_few_pairs(corpus: SampledCorpus, n: int) -> None:
    for budget in (BUDGET, 5):
        sampler = sampler_of(corpus, rows=np.arange(n), batch_tokens=budget)
        for batches in epochs_of(PoolLoader(sampler), 3):
            assert sorted(k for index, *_ in batches for k in index) == list(range(n))
            assert len(batches) == len(sampler)


def test_cut_into_a_number_of_runs() -> None:
    random = np.random.default_rng(3)
    for _ in range(50):
        n_pairs = int(random.integers(1, 90))
        source, target = random.integers(0, 30, (2, n_pairs))
        budget = int(random.integers(60, 400))
        needed = len(cut_by_tokens(source, target, budget)) - 1
        for n in {needed, min(n_pairs, needed + 3), max(1, needed - 2)}:
            bounds = cut_into(source, target, budget, n)
            assert bounds[0] == 0 and bounds[-1] == n_pairs
            assert len(bounds) == n + 1 and (np.diff(bounds) > 0).all()
            if n >= needed:
                sizes = [
                    (b - a) * (source[a:b].max() + target[a:b].max() + 2)
                    for a, b in pairwise(bounds)
                ]
                assert max(sizes) <= budget
