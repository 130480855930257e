"""An iterable over batches that knows where it stands and goes on exactly there."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import DataLoader, Dataset

from kakehashi.data.batching import Batch, BatchSampler, FlatCorpus
from kakehashi.data.pools import PoolSampler, Share
from kakehashi.data.position import EpochPosition

_Made = TypeVar("_Made")


class Loader(ABC):
    """Batches of training or validation, in the order of a sampler.

    The state counts batches handed to the caller, not those that workers made ahead, so it is
    exact with any number of workers. After `load_state_dict` the next iteration starts with the
    batch that would have followed; every other iteration starts at the epoch's first batch. An
    iteration that reaches the end moves on to the next epoch.
    """

    def __init__(self, sampler: EpochPosition, *, workers: int, pin_memory: bool) -> None:
        self.sampler = sampler
        """Lightning calls `set_epoch` on this attribute."""
        self._workers, self._pin_memory = workers, pin_memory
        self._resumed = False

    def __len__(self) -> int:
        return len(self.sampler)

    def set_epoch(self, epoch: int) -> None:
        """Take the order of this epoch."""
        self.sampler.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Epoch and batches handed out, in plain numbers."""
        return self.sampler.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Let the next iteration go on after the last batch handed out."""
        self.sampler.load_state_dict(state)
        self._resumed = True

    def __iter__(self) -> Iterator[Batch]:
        sampler = self.sampler
        if not self._resumed:
            sampler.position = 0
        self._resumed = False
        for batch in self._batches():
            sampler.position += 1
            # Workers' batches come pinned.
            yield batch.pin_memory() if self._pin_memory and not self._workers else batch
        sampler.set_epoch(sampler.epoch + 1)

    @abstractmethod
    def _batches(self) -> Iterator[Batch]:
        """What is left of the epoch."""

    def _assembled(self, made: Dataset[_Made], items: Sequence[Any]) -> Iterator[_Made]:
        """`made[item]` of each item in order, made by the workers."""
        if self._workers == 0:
            yield from (made[item] for item in items)
            return
        yield from DataLoader(
            made,
            sampler=items,
            batch_size=None,
            num_workers=self._workers,
            pin_memory=self._pin_memory,
            collate_fn=_unchanged,
            # Its own generator: the global one, which dropout draws from, stays untouched.
            generator=torch.Generator(),
        )


class BatchLoader(Loader):
    """Batches of a tokenised split."""

    sampler: BatchSampler

    def __init__(
        self,
        corpus: FlatCorpus,
        sampler: BatchSampler,
        *,
        workers: int = 0,
        pin_memory: bool = False,
    ) -> None:
        super().__init__(sampler, workers=workers, pin_memory=pin_memory)
        self._corpus = corpus

    def _batches(self) -> Iterator[Batch]:
        sampler = self.sampler
        return self._assembled(_Rows(self._corpus), sampler.batches()[sampler.position :])


class PoolLoader(Loader):
    """Batches of pairs whose pieces are drawn; workers make a pool at a time."""

    sampler: PoolSampler

    def __init__(self, sampler: PoolSampler, *, workers: int = 0, pin_memory: bool = False) -> None:
        super().__init__(sampler, workers=workers, pin_memory=pin_memory)

    def _batches(self) -> Iterator[Batch]:
        shares = self._assembled(_Pools(self.sampler), self.sampler.shares())
        return chain.from_iterable(shares)


class _Rows(Dataset[Batch]):
    def __init__(self, corpus: FlatCorpus) -> None:
        self._corpus = corpus

    def __getitem__(self, rows: npt.NDArray[np.int64]) -> Batch:
        return self._corpus.batch(rows)


class _Pools(Dataset[list[Batch]]):
    def __init__(self, sampler: PoolSampler) -> None:
        self._sampler, self._epoch = sampler, sampler.epoch

    def __getitem__(self, share: Share) -> list[Batch]:
        return self._sampler.assemble(share, self._epoch)


def _unchanged(batch: Any) -> Any:
    return batch
