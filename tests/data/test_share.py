from collections import Counter
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kakehashi.data.share import RawBlock, Share, Start
from kakehashi.data.stream import SHARD, pairs_of, shard_name
from kakehashi.errors import DataError


def epochs_of(share: Share, n: int, start: Start | None = None) -> list[RawBlock]:
    """The blocks of the first n epochs."""
    blocks = []
    for block in share.blocks(start or Start()):
        if block.start.epoch >= n:
            return blocks
        blocks.append(block)
    raise AssertionError("a stream has no end")


def numbers(share: Share, block: RawBlock) -> list[int]:
    return list(map(int, pairs_of(share.stream, block.parts).lines))


def plain(share: Share, blocks: list[RawBlock]) -> list[tuple[Start, Start, list[int]]]:
    return [(block.start, block.after, numbers(share, block)) for block in blocks]


@settings(max_examples=25)
@given(
    sizes=st.lists(st.integers(0, 23), min_size=1, max_size=5).filter(any),
    buffer=st.integers(1, 30),
    world_size=st.integers(1, 4),
    at_a_time=st.integers(1, 9),
    seed=st.integers(0, 3),
)
def test_in_every_epoch_each_pair_belongs_to_one_process(
    numbered, sizes, buffer, world_size, at_a_time, seed
) -> None:
    stream = numbered(sizes, at_a_time)
    every = Counter(shard * SHARD + row for shard, n in enumerate(sizes) for row in range(1, n + 1))
    taken = [Counter[int](), Counter[int](), Counter[int]()]
    for rank in range(world_size):
        share = Share(stream, buffer=buffer, seed=seed, rank=rank, world_size=world_size)
        for k, block in enumerate(share.blocks(Start())):
            # a process whose shards are empty in these epochs may have none of their blocks
            if block.start.epoch >= 3 or k > 3 * sum(sizes):
                break
            assert 0 < len(numbers(share, block)) <= buffer
            taken[block.start.epoch].update(numbers(share, block))
    assert taken == [every, every, every]


@settings(max_examples=25)
@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=4).filter(any),
    buffer=st.integers(1, 12),
    world_size=st.integers(1, 3),
)
def test_reading_goes_on_from_the_start_of_any_block(numbered, sizes, buffer, world_size) -> None:
    stream = numbered(sizes, 4)
    for rank in range(world_size):
        share = Share(stream, buffer=buffer, seed=3, rank=rank, world_size=world_size)
        whole = plain(share, epochs_of(share, 3))
        for k, (start, _, _) in enumerate(whole):
            assert plain(share, epochs_of(share, 3, start)) == whole[k:]
        for k, (_, after, _) in enumerate(whole):
            assert plain(share, epochs_of(share, 3, after)) == whole[k + 1 :]


@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 6])
def test_no_pair_comes_again_before_all_others_came(numbered, world_size: int) -> None:
    """Processes that take a block each, again and again, stay in the same epoch."""
    stream = numbered([8] * 6)
    shares = [
        Share(stream, buffer=4, seed=1, rank=rank, world_size=world_size)
        for rank in range(world_size)
    ]
    taken = Counter({shard * SHARD + row: 0 for shard in range(6) for row in range(1, 9)})
    for blocks in islice(zip(*(s.blocks(Start()) for s in shares), strict=True), 60):
        for share, block in zip(shares, blocks, strict=True):
            taken.update(numbers(share, block))
        assert max(taken.values()) - min(taken.values()) <= 1
    assert min(taken.values()) >= 5


def test_a_shard_that_has_become_shorter_is_told(numbered) -> None:
    share = Share(numbered([20]), buffer=6, seed=1)
    start = epochs_of(share, 1)[2].start
    assert start.row == 12
    shorter = Share(numbered([11]), buffer=6, seed=1)
    with pytest.raises(DataError, match=r"shards: it ends after row 11, and .* come to row 12"):
        next(shorter.blocks(start))
    # one that ends just there was read to its end
    whole = Share(numbered([12]), buffer=6, seed=1)
    assert numbers(whole, next(whole.blocks(start))) == [1, 2, 3, 4, 5, 6]


def test_the_order_of_the_shards_is_another_one_in_every_epoch(numbered) -> None:
    share = Share(numbered([3] * 11), buffer=5, seed=1)
    orders = [tuple(share.shards(epoch)) for epoch in range(9)]
    assert all(sorted(order) == list(range(11)) for order in orders)
    assert len(set(orders)) == 9
    assert Share(numbered([3] * 11), buffer=5, seed=2).shards(0) != list(orders[0])


def test_a_pair_knows_its_place(numbered) -> None:
    stream = numbered([4, 0, 19])
    share = Share(stream, buffer=6, seed=1)
    for block in epochs_of(share, 1):
        pairs = pairs_of(stream, block.parts)
        for i, source in enumerate(pairs.source):
            shard, row = map(int, source.split())
            assert pairs.place(i) == (f"shards, shard {shard + 1} of 3", row + 1)
            assert pairs.lines[i] == shard * SHARD + row + 1
            assert pairs.target[i] == f"{row} {shard}"
    alone = numbered([4])
    (block,) = epochs_of(Share(alone, buffer=6, seed=1), 1)
    assert pairs_of(alone, block.parts).place(3) == ("shards", 4)
    assert shard_name(alone, 0) == "shards"


def test_a_stream_without_a_pair_is_no_endless_loop(numbered) -> None:
    with pytest.raises(DataError, match="shards: there are no pairs in it"):
        next(Share(numbered([0, 0]), buffer=3, seed=1).blocks(Start()))
