from itertools import islice

import pytest
import torch

from kakehashi.data.batching import BatchSampler, FlatCorpus
from kakehashi.data.loader import BatchLoader


def loader_of(corpus: FlatCorpus, workers: int = 0, **settings) -> BatchLoader:
    lengths = corpus.source_lengths, corpus.target_lengths
    sampler = BatchSampler(*lengths, batch_tokens=211, seed=13, **settings)
    return BatchLoader(corpus, sampler, workers=workers)


def rows_of(batches) -> list[list[int]]:
    return [batch.index.tolist() for batch in batches]


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_follow_the_sampler(some_corpus: FlatCorpus, workers: int) -> None:
    loader = loader_of(some_corpus, workers)
    loader.set_epoch(2)
    batches = list(loader)
    assert len(batches) == len(loader)
    loader.set_epoch(2)
    assert rows_of(batches) == [rows.tolist() for rows in loader.sampler.batches()]
    for batch in batches:
        expected = some_corpus.batch(batch.index.numpy())
        assert torch.equal(batch.source, expected.source)
        assert torch.equal(batch.target, expected.target)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("taken", [0, 1, 5, None])
def test_stopped_anywhere_it_goes_on_exactly(
    some_corpus: FlatCorpus, workers: int, taken: int | None
) -> None:
    whole = loader_of(some_corpus)
    whole.set_epoch(1)
    expected = [*rows_of(whole), *rows_of(whole)]  # epoch 1, then 2
    taken = len(whole) if taken is None else taken

    stopped = loader_of(some_corpus, workers)
    stopped.set_epoch(1)
    iterator = iter(stopped)
    first = rows_of(islice(iterator, taken))
    state = stopped.state_dict()
    del iterator

    resumed = loader_of(some_corpus, workers)
    resumed.load_state_dict(state)
    if taken < len(whole):
        # What Lightning does on resuming in the middle of an epoch.
        resumed.set_epoch(1)
        assert first + rows_of(resumed) + rows_of(resumed) == expected
    else:
        assert first + rows_of(resumed) == expected


def test_an_iteration_left_early_starts_over(some_corpus: FlatCorpus) -> None:
    loader = loader_of(some_corpus)
    first = rows_of(islice(loader, 3))
    assert rows_of(islice(loader, 3)) == first


def test_an_epoch_read_to_its_end_is_followed_by_the_next(some_corpus: FlatCorpus) -> None:
    loader = loader_of(some_corpus)
    first, second = rows_of(loader), rows_of(loader)
    assert first != second
    assert loader.state_dict()["epoch"] == 2
    loader.set_epoch(0)
    assert rows_of(loader) == first


def test_workers_leave_the_random_state_alone(some_corpus: FlatCorpus) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    rows_of(loader_of(some_corpus, workers=1))
    assert torch.equal(torch.get_rng_state(), before)
