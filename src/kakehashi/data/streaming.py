"""Batches of a stream without end: an exact position in it, and blocks that are made ahead.

The number of batches of an epoch isn't known, and differs from process to process. So the loader
goes on into the next epoch by itself, and Lightning sees one epoch that never ends.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, astuple, dataclass, field
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset

from kakehashi.data.batching import Batch
from kakehashi.data.blocks import Block, BlockMaker, Counts
from kakehashi.data.ledger import LedgerTotal
from kakehashi.data.ledgerfile import LedgerFile
from kakehashi.data.share import BARREN, Share, Start
from kakehashi.errors import DataError, KakehashiError
from kakehashi.processes import gathered

ENDLESS = 1 << 40
"""Batches, as far as Lightning is told. Without any number it would read a batch ahead, and the
position would be wrong by one."""


@dataclass
class Position:
    """Where a process stands."""

    start: Start = field(default_factory=Start)
    """Of the block that it is in."""
    handed: int = 0
    """Batches of that block that were handed out."""
    pairs: int = 0
    """Pairs that were handed out since the run began."""
    before: Counts = field(default_factory=Counts)
    """Of the first epoch's blocks before this one."""
    ledger: int = 0
    """Bytes that the ledger had before this block."""

    def plain(self) -> dict[str, Any]:
        """Integers, and lists and dictionaries of them."""
        return {
            "start": list(self.start),
            "handed": self.handed,
            "pairs": self.pairs,
            "before": asdict(self.before),
            "ledger": self.ledger,
        }

    @classmethod
    def of(cls, plain: dict[str, Any]) -> "Position":
        """The position that `plain` stands for."""
        return cls(
            Start(*plain["start"]),
            plain["handed"],
            plain["pairs"],
            Counts(**plain["before"]),
            plain["ledger"],
        )


@dataclass(frozen=True)
class Seen:
    """What a run has read of its stream."""

    pairs: int
    """That it was trained on, as often as it was."""
    counts: Counts
    """Of the first epoch, as far as it was read."""
    epochs: float
    """0 during the first one, whose length is not known before its end."""


class StreamLoader:
    """A process's batches of a stream.

    The state counts batches that were handed out, not those that were made ahead. Every iteration
    goes on where the last one, or the state that was loaded, ended: with the very next batch, for
    which at most one block is read again.
    """

    def __init__(
        self,
        share: Share,
        maker: BlockMaker,
        ledger: LedgerFile,
        *,
        workers: int = 0,
        gather: Callable[[Any], list[Any]] | None = None,
    ) -> None:
        """With `workers` a process makes the next block while one is being handed out.

        `gather` brings a value of each process together for `seen`: with torch.distributed, if
        it is not said how.
        """
        self._share, self._maker, self._ledger = share, maker, ledger
        self._workers = workers
        self._gather = gathered if gather is None else gather
        self._position = Position()
        self._block = Counts()
        """Of the block that it is in, while in the first epoch."""
        self._unread: int | None = None
        """Bytes of the ledger of a state that was loaded, as long as nothing was read since."""

    def __len__(self) -> int:
        return ENDLESS

    def _order(self) -> dict[str, Any]:
        """What the order of batches depends on."""
        share = self._share
        return {
            "seed": share.seed,
            "data.buffer": share.buffer,
            "data.batch_tokens": self._maker.batch_tokens,
            "data.max_length": self._maker.max_length,
            "shards": share.stream.n_shards,
            "the data set's version": share.stream.version,
            "processes": share.world_size,
        }

    def state_dict(self) -> dict[str, Any]:
        """This process's position, in integers, lists and dictionaries."""
        return {
            "order": self._order(),
            "position": self._position.plain(),
            "block": asdict(self._block),
            "ledger": self._ledger.size,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on after the last batch handed out; raises DataError for another order's state."""
        for what, value in self._order().items():
            if state["order"].get(what) != value:
                raise DataError(
                    f"the saved position belongs to {what} {state['order'].get(what)}, this run "
                    f"has {value}: the same data set and settings are needed to go on"
                )
        self._position = Position.of(state["position"])
        # of a run that has nothing left to do no more will be known than this
        self._block = Counts(**state["block"])
        self._unread = state["ledger"]

    def __iter__(self) -> Iterator[Batch]:
        self._unread = None
        self._ledger.cut(self._position.ledger)
        for block in self._blocks():
            position = self._position
            position.start = block.start
            first_epoch = block.start.epoch == 0
            self._block = block.counts if first_epoch else Counts()
            if first_epoch:
                self._ledger.append(block.ledger)
            for batch in block.batches(position.handed):
                position.handed += 1
                position.pairs += len(batch.index)
                yield batch
            self._position = Position(
                block.after,
                pairs=position.pairs,
                before=position.before + self._block,
                ledger=self._ledger.size,
            )
            self._block = Counts()

    def _blocks(self) -> Iterator[Block]:
        made = _Made(self._share, self._maker, self._position.start)
        if not self._workers:
            yield from made.blocks()
            return
        for block in DataLoader(
            made,
            batch_size=None,
            num_workers=1,
            prefetch_factor=1,
            collate_fn=_unchanged,
            # Its own generator: the global one, which dropout draws from, stays untouched.
            generator=torch.Generator(),
        ):
            if isinstance(block, KakehashiError):
                raise block
            yield block

    def seen(self) -> tuple[Seen, list[LedgerTotal]]:
        """What all processes have read, and entered; they have to ask for it together."""
        if self._unread is not None:
            self._ledger.cut(self._unread)
        position = self._position
        mine = (
            position.pairs,
            astuple(position.before + self._block),
            position.start.epoch,
            self._ledger.totals(),
        )
        every = self._gather(mine)
        counts = sum((Counts(*counts) for _, counts, _, _ in every), Counts())
        pairs = sum(pairs for pairs, *_ in every)
        whole = all(epoch > 0 for _, _, epoch, _ in every)
        totals = [total for *_, totals in every for total in totals]
        return Seen(pairs, counts, pairs / counts.kept if whole and counts.kept else 0.0), totals


class _Made(IterableDataset[Any]):
    def __init__(self, share: Share, maker: BlockMaker, start: Start) -> None:
        self._share, self._maker, self._start = share, maker, start

    def blocks(self) -> Iterator[Block]:
        """The blocks that have a batch or an entry, from the start on."""
        fruitful = self._start.epoch
        for raw in self._share.blocks(self._start):
            block = self._maker(raw)
            if block.counts.kept:
                fruitful = raw.start.epoch
            elif raw.start.epoch - fruitful > BARREN + self._share.world_size:
                raise DataError(
                    f"{self._share.stream.name}: of what process {self._share.rank} read in "
                    f"{BARREN} epochs no pair is left to train on"
                )
            yield block

    def __iter__(self) -> Iterator[Any]:
        # An error would come out of a worker as its traceback; the person wants the message.
        try:
            yield from self.blocks()
        except KakehashiError as error:
            yield error


def _unchanged(block: Any) -> Any:
    return block
