"""Batches of a stream: what they hold, that no position is lost, and that processes share."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from kakehashi.data.batching import Batch
from kakehashi.data.blocks import BlockMaker
from kakehashi.data.ledger import Ledger
from kakehashi.data.ledgerfile import LedgerFile
from kakehashi.data.pairs import Pairs
from kakehashi.data.sampling import resegmenter
from kakehashi.data.share import Share
from kakehashi.data.stream import SHARD, TrainingStream
from kakehashi.data.streaming import StreamLoader
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.data.tokenizer_config import SamplingConfig
from kakehashi.errors import CorpusError, DataError
from kakehashi.symbols import BOS, EOS, PAD

MAX_LENGTH, BATCH_TOKENS = 23, 200
Make = Callable[..., StreamLoader]


@pytest.fixture(scope="module")
def tokenizer(small_corpus) -> Tokenizer:
    return Tokenizer.train([*small_corpus.source, *small_corpus.target], vocab_size=420)


@pytest.fixture(scope="module")
def stream(small_corpus, shards_in_memory):
    rows = list(zip(small_corpus.source, small_corpus.target, strict=True))
    return shards_in_memory([rows[:17], rows[17:20], rows[20:61]])


def screen(pairs: Pairs, ledger: Ledger) -> tuple[Pairs, int]:
    """Leaves out every ninth row of a shard."""
    kept = []
    for i in range(len(pairs)):
        name, row = pairs.place(i)
        if row % 9:
            kept.append(i)
        else:
            ledger.add("train", name, row, "both", "a ninth row")
    return pairs.select(kept), 0


@pytest.fixture
def loader(stream, tokenizer: Tokenizer, tmp_path: Path) -> Make:
    """Makes loaders of one run, or of another one in a `folder` of its own."""

    def make(
        *,
        buffer: int = 13,
        rank: int = 0,
        world_size: int = 1,
        workers: int = 0,
        seed: int = 5,
        sampling: SamplingConfig | None = None,
        folder: str = "run",
        **settings: Any,
    ) -> StreamLoader:
        (tmp_path / folder).mkdir(exist_ok=True)
        training = TrainingStream(settings.pop("stream", stream), screen, buffer, 7)
        maker = BlockMaker(
            training,
            tokenizer,
            None if sampling is None else resegmenter(tokenizer, sampling),
            max_length=MAX_LENGTH,
            batch_tokens=BATCH_TOKENS,
            seed=seed,
        )
        ledger = LedgerFile.of_process(tmp_path / folder / "ledger.jsonl", Ledger(), rank)
        share = Share(training.pairs, buffer=buffer, seed=seed, rank=rank, world_size=world_size)
        return StreamLoader(share, maker, ledger, workers=workers, **settings)

    return make


def epochs(loader: StreamLoader, n: int) -> list[list[Batch]]:
    """The batches of the first n epochs."""
    found: list[list[Batch]] = [[] for _ in range(n)]
    for batch in loader:
        epoch = loader.state_dict()["position"]["start"][0]
        if epoch >= n:
            return found
        found[epoch].append(batch)
    raise AssertionError("a stream has no end")


def plain(batches: list[Batch] | Iterator[Batch]) -> list[tuple[Any, Any, Any]]:
    return [(b.index.tolist(), b.source.tolist(), b.target.tolist()) for b in batches]


def expected(stream, tokenizer: Tokenizer) -> dict[int, tuple[list[int], list[int]]]:
    """The pairs to train on by their numbers, tokenised one by one."""
    found = {}
    for shard, rows in enumerate(stream.shards):
        for row, (source, target) in enumerate(rows, 1):
            pair = tokenizer.encode(source), tokenizer.encode(target)
            if row % 9 and max(map(len, pair)) <= MAX_LENGTH:
                found[shard * SHARD + row] = pair
    return found


def pieces(batches: list[Batch]) -> dict[int, tuple[list[int], list[int]]]:
    found = {}
    for batch in batches:
        for k, source, target in zip(*plain([batch])[0], strict=True):
            assert target[0] == BOS
            sides = [[i for i in side if i not in (PAD, BOS)] for side in (source, target)]
            assert all(side[-1] == EOS for side in sides)
            assert k not in found
            found[k] = (sides[0][:-1], sides[1][:-1])
    return found


@pytest.mark.parametrize("workers", [0, 1])
def test_an_epoch_has_every_pair_once_in_its_own_pieces(
    loader: Make, stream, tokenizer: Tokenizer, workers: int, tmp_path: Path
) -> None:
    found = epochs(loader(workers=workers), 3)
    wanted = expected(stream, tokenizer)
    assert 25 < len(wanted) < 50
    orders = []
    for batches in found:
        assert pieces(batches) == wanted
        for batch in batches:
            size = sum(side.shape[1] for side in (batch.source, batch.target_output))
            assert len(batch.index) * size <= BATCH_TOKENS
        orders.append([k for batch in batches for k in batch.index.tolist()])
    assert orders[0] != orders[1] != orders[2]
    # Every pair that isn't there has one entry, of the first epoch.
    entries = list(Ledger.read(tmp_path / "run" / "ledger.jsonl"))
    assert len({(entry.file, entry.line) for entry in entries}) == len(entries)
    assert len(entries) == 61 - len(wanted)
    assert {entry.reason for entry in entries} == {"a ninth row", "more than 23 pieces"}


def test_blocks_are_shuffled_and_workers_change_nothing(loader: Make) -> None:
    first = plain(islice(loader(), 40))
    assert plain(islice(loader(workers=1, folder="other"), 40)) == first
    assert plain(islice(loader(seed=6, folder="other"), 40)) != first
    for batches in epochs(loader(buffer=1000), 2):
        targets = [int((batch.target != PAD).sum(1).max()) for batch in batches]
        assert targets != sorted(targets)
        for batch in batches:
            lengths = (batch.target != PAD).sum(1)
            assert int(lengths.max() - lengths.min()) <= 4  # pairs of like length go together


@pytest.mark.parametrize(("world_size", "workers"), [(2, 0), (3, 0), (3, 1), (5, 0)])
def test_processes_share_every_epoch(
    loader: Make, stream, tokenizer: Tokenizer, world_size: int, workers: int, tmp_path: Path
) -> None:
    wanted = dict.fromkeys(expected(stream, tokenizer), 1)
    taken = [Counter[int]() for _ in range(3)]
    for rank in range(world_size):
        share = loader(
            rank=rank, world_size=world_size, workers=workers, gather=lambda v: [v] * world_size
        )
        for epoch, batches in enumerate(epochs(share, 3)):
            taken[epoch].update(k for batch in batches for k in batch.index.tolist())
    assert taken == [wanted] * 3
    names = [f"ledger-{rank}.jsonl" for rank in range(1, world_size)]
    files = [Ledger.read(tmp_path / "run" / name) for name in ["ledger.jsonl", *names]]
    places = [(entry.file, entry.line) for ledger in files for entry in ledger]
    assert len(places) == len(set(places)) == 61 - len(wanted)


@pytest.mark.parametrize(("world_size", "workers"), [(1, 0), (1, 1), (5, 0)])
def test_from_every_position_a_new_loader_goes_on_exactly(
    loader: Make, tmp_path: Path, workers: int, world_size: int
) -> None:
    settings: dict[str, Any] = {
        "rank": world_size - 1,
        "world_size": world_size,
        "gather": lambda v: [v] * world_size,
        "sampling": SamplingConfig(alpha=0.3),
    }
    name = "ledger.jsonl" if world_size == 1 else f"ledger-{world_size - 1}.jsonl"
    first = loader(**settings)
    n = sum(map(len, epochs(first, 2))) + 1
    uninterrupted = loader(**settings)
    iterator = iter(uninterrupted)
    states, whole = [uninterrupted.state_dict()], []
    ledgers = [b""]
    for batch in islice(iterator, n):
        whole.append(batch)
        states.append(json.loads(json.dumps(uninterrupted.state_dict())))  # plain numbers
        ledgers.append((tmp_path / "run" / name).read_bytes())
    whole = plain(whole)
    wanted_seen = uninterrupted.seen()
    every = 1 if not workers else 9
    for taken in range(0, n, every):
        resumed = loader(workers=workers, **settings)
        resumed.load_state_dict(states[taken])
        iterator = iter(resumed)
        left = plain(islice(iterator, n - taken))
        assert left == whole[taken:]
        assert resumed.state_dict() == states[-1]
        assert (tmp_path / "run" / name).read_bytes() == ledgers[-1]
        assert resumed.seen() == wanted_seen
    assert n > 20 // world_size


def test_going_on_reads_one_block_again_and_no_more(loader: Make, numbered, monkeypatch) -> None:
    stream = numbered([100, 100], at_a_time=10)
    whole = loader(stream=stream, buffer=20)
    iterator = iter(whole)
    for _ in islice(iterator, 7):
        state = whole.state_dict()
    start = state["position"]["start"]
    stream.read.clear()
    resumed = loader(stream=stream, buffer=20)
    resumed.load_state_dict(state)
    assert plain([next(iter(resumed))]) == plain([next(iterator)])
    # the rows before the block are skipped, and its own are read
    assert 0 < len(stream.read) <= (start[4] + 20) // 10


def test_an_iteration_goes_on_where_the_last_one_ended(loader: Make) -> None:
    whole = plain(islice(loader(folder="other"), 30))
    piecewise = loader()
    assert [batch for _ in range(6) for batch in plain(islice(piecewise, 5))] == whole


def test_drawn_pieces_depend_on_seed_epoch_and_pair_alone(loader: Make) -> None:
    drawn = SamplingConfig(alpha=0.3)
    first = [pieces(batches) for batches in epochs(loader(sampling=drawn), 2)]
    other = [pieces(b) for b in epochs(loader(sampling=drawn, buffer=31, folder="other"), 2)]
    plainly = [pieces(batches) for batches in epochs(loader(folder="plain"), 1)]
    assert first == other
    assert first[0] != first[1]
    assert set(first[0]) == set(plainly[0])
    assert first[0] != plainly[0]


def test_another_order_s_state_is_refused(loader: Make) -> None:
    state = loader().state_dict()
    with pytest.raises(DataError, match="belongs to seed 5, this run has 6"):
        loader(seed=6).load_state_dict(state)
    with pytest.raises(DataError, match=r"belongs to data\.buffer 13, this run has 14"):
        loader(buffer=14).load_state_dict(state)
    with pytest.raises(DataError, match="belongs to processes 1, this run has 2"):
        loader(world_size=2).load_state_dict(state)


def test_another_data_set_s_state_is_refused(loader: Make, stream, shards_in_memory) -> None:
    state = loader().state_dict()
    other = shards_in_memory(stream.shards)
    loader(stream=other).load_state_dict(state)
    other.version = "changed since"
    with pytest.raises(DataError, match="version as it was, this run has changed since: the same"):
        loader(stream=other).load_state_dict(state)


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_in_the_middle_comes_as_it_is(
    loader: Make, numbered, monkeypatch, workers: int
) -> None:
    stream = numbered([40])
    broken = CorpusError("the hub is gone")
    original = type(stream).tables

    def tables(self, shard: int):
        yield from islice(original(self, shard), 4)
        raise broken

    monkeypatch.setattr(type(stream), "tables", tables)
    read: list[Batch] = []
    with pytest.raises(CorpusError, match=r"^the hub is gone$"):
        read.extend(iter(loader(stream=stream, buffer=10, workers=workers)))
    assert sum(len(batch.index) for batch in read) == 18  # two whole blocks, less two ninth rows


def test_a_stream_of_which_nothing_is_left_is_no_endless_loop(loader: Make, numbered) -> None:
    stream = numbered([8])
    stream.shards = [[("a " * 40, "b")] * 8]
    with pytest.raises(DataError, match="no pair is left to train on"):
        next(iter(loader(stream=stream)))


def test_workers_leave_the_random_state_alone(loader: Make) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    plain(islice(loader(workers=1), 5))
    assert torch.equal(torch.get_rng_state(), before)
