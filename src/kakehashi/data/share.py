"""The part of a stream that a process reads, cut into blocks.

The shards come in a new random order in every epoch. Where their number is a multiple of that of
the processes, each process takes every world_size-th shard of that order; otherwise, as some would
have a shard more and fall behind, epoch by epoch, all of them read everything, and the blocks,
counted on through all epochs, belong to one process after the other. Either way every pair of an
epoch belongs to exactly one process.
"""

from collections.abc import Iterator
from typing import NamedTuple

from kakehashi.data.batching import random_order
from kakehashi.data.stream import PairStream, Part, shard_name
from kakehashi.errors import DataError

BARREN = 100
"""Epochs in a row that may bring nothing to a process before it gives up."""


class Start(NamedTuple):
    """Where a block begins, in plain numbers."""

    epoch: int = 0
    block: int = 0
    """Blocks before it in this epoch, of those that the process reads."""
    number: int = 0
    """The same, of all epochs."""
    shard: int = 0
    """Shards behind it, in the epoch's order of this process's shards."""
    row: int = 0
    """Rows behind it in the next shard."""


class RawBlock(NamedTuple):
    """Neighbouring rows, as they are stored."""

    start: Start
    after: Start
    """Where the next block begins."""
    parts: list[Part]


class Share:
    """Reads the blocks of one process."""

    def __init__(
        self, stream: PairStream, *, buffer: int, seed: int, rank: int = 0, world_size: int = 1
    ) -> None:
        self.stream, self.buffer, self.seed = stream, buffer, seed
        self.rank, self.world_size = rank, world_size
        self._alone = stream.n_shards % world_size == 0
        """Whether no other process reads these shards."""

    def shards(self, epoch: int) -> list[int]:
        """The shards that the process reads in an epoch, in their order."""
        order: list[int] = random_order(self.stream.n_shards, self.seed, epoch, 0).tolist()
        return order[self.rank :: self.world_size] if self._alone else order

    def blocks(self, start: Start) -> Iterator[RawBlock]:
        """This process's blocks from `start` on, without end.

        Raises CorpusError where reading breaks off, DataError where there is nothing to read.
        """
        empty = 0
        while empty < BARREN:
            empty += 1
            for block in self._epoch(start):
                empty, start = 0, block.after
                if self._alone or block.start.number % self.world_size == self.rank:
                    yield block
            start = Start(start.epoch + 1, number=start.number)
        raise DataError(f"{self.stream.name}: there are no pairs in it")

    def _epoch(self, start: Start) -> Iterator[RawBlock]:
        """What is left of an epoch."""
        parts: list[Part] = []
        size, here = 0, start
        shards = self.shards(start.epoch)
        for place, shard in enumerate(shards[start.shard :], start.shard):
            behind = start.row if place == start.shard else 0
            for part in self._rows(shard, behind):
                taken = 0
                while taken < len(part.table):
                    table = part.table.slice(taken, self.buffer - size)
                    parts.append(Part(shard, part.row + taken, table))
                    taken += len(table)
                    size += len(table)
                    if size == self.buffer:
                        after = _next(here, place, part.row + taken)
                        yield RawBlock(here, after, parts)
                        parts, size, here = [], 0, after
        if size:
            yield RawBlock(here, _next(here, len(shards), 0), parts)

    def _rows(self, shard: int, behind: int) -> Iterator[Part]:
        """A shard's rows but the first `behind`; raises DataError when there are fewer."""
        row = 0
        for table in self.stream.tables(shard):
            skipped = min(len(table), max(0, behind - row))
            if skipped < len(table):
                yield Part(shard, row + skipped, table.slice(skipped))
            row += len(table)
        if row < behind:
            raise DataError(
                f"{shard_name(self.stream, shard)}: it ends after row {row:,}, and the run had "
                f"come to row {behind:,}: the same data set is needed to go on"
            )


def _next(start: Start, shard: int, row: int) -> Start:
    return Start(start.epoch, start.block + 1, start.number + 1, shard, row)
