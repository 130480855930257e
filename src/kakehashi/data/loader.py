"""An iterable over batches that knows where it stands and goes on exactly there."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import DataLoader, Dataset

from kakehashi.data.batching import Batch, BatchSampler, FlatCorpus


class BatchLoader:
    """Batches of a tokenised split, in the sampler's order.

    The state counts batches handed to the caller, not those that workers made ahead, so it is
    exact with any number of workers. After `load_state_dict` the next iteration starts with the
    batch that would have followed; every other iteration starts at the epoch's first batch. An
    iteration that reaches the end moves on to the next epoch.
    """

    def __init__(
        self,
        corpus: FlatCorpus,
        sampler: BatchSampler,
        *,
        workers: int = 0,
        pin_memory: bool = False,
    ) -> None:
        self.sampler = sampler
        """Lightning calls `set_epoch` on this attribute."""
        self._rows = _Rows(corpus)
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
        for batch in self._assembled(sampler.batches()[sampler.position :]):
            sampler.position += 1
            yield batch
        sampler.set_epoch(sampler.epoch + 1)

    def _assembled(self, batches: list[npt.NDArray[np.int64]]) -> Iterator[Batch]:
        if self._workers == 0:
            for rows in batches:
                batch = self._rows[rows]
                yield batch.pin_memory() if self._pin_memory else batch
            return
        yield from DataLoader(
            self._rows,
            sampler=batches,
            batch_size=None,
            num_workers=self._workers,
            pin_memory=self._pin_memory,
            collate_fn=_unchanged,
            # Its own generator: the global one, which dropout draws from, stays untouched.
            generator=torch.Generator(),
        )


class _Rows(Dataset[Batch]):
    def __init__(self, corpus: FlatCorpus) -> None:
        self._corpus = corpus

    def __getitem__(self, rows: npt.NDArray[np.int64]) -> Batch:
        return self._corpus.batch(rows)


def _unchanged(batch: Any) -> Any:
    return batch
