"""Batches that do not fit into memory: telling it, and cutting them into parts that do.

B rows, M source pieces with EOS, N target pieces with EOS.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from kakehashi.data.batching import Batch, cut_by_tokens
from kakehashi.errors import TrainingError

SAID = ("can't allocate memory", "cannot allocate memory", "CUBLAS_STATUS_ALLOC_FAILED")
"""By errors that are no OutOfMemoryError: torch's on a CPU, and cuBLAS's for its work space."""


def out_of_memory(error: BaseException) -> bool:
    """Whether it was memory that was missing."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(said in str(error) for said in SAID)


def padded_size(batch: Batch) -> int:
    """B * (M + N): what ``data.batch_tokens`` bounds."""
    return len(batch.source) * (batch.source.shape[1] + batch.target_input.shape[1])


def in_parts(batch: Batch, most: int | None) -> list[Batch]:
    """The batch cut by rows into parts of at most ``most`` padded tokens, or of a single row."""
    if most is None or padded_size(batch) <= most:
        return [batch]
    source = batch.source_allowed.sum(1).cpu().numpy() - 1
    target = batch.target_allowed.sum(1).cpu().numpy() - 1
    bounds = cut_by_tokens(source, target, most).tolist()
    return [
        Batch(
            batch.source[rows, : int(source[rows].max()) + 1],
            batch.target[rows, : int(target[rows].max()) + 2],
            batch.index[rows],
        )
        for rows in map(slice, bounds[:-1], bounds[1:])
    ]


@contextmanager
def enough_memory(batch: Batch) -> Iterator[None]:
    """For a pass that others wait for, so that it cannot be made again in parts.

    Raises:
        TrainingError: when memory runs out.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        raise TrainingError(
            f"out of memory with a batch of {padded_size(batch):,} padded tokens, and with several "
            "processes a batch that has begun cannot be split: lower data.batch_tokens, and raise "
            "trainer.accumulate to keep the size of an update"
        ) from error
