"""Which sentences of a window are decoded together."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from kakehashi.errors import DataError
from kakehashi.symbols import EOS, PAD

PIECES_A_SENTENCE = 64
"""A batch of n sentences is allowed n times as many padded source pieces: fewer long sentences go
together, so that memory does not grow with their length."""

T = TypeVar("T")


def windows(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Consecutive lists of ``size`` items; the last may be shorter. Reads no further ahead.

    Where the items end in a DataError (a line that cannot be read), those before it come first.
    """
    window: list[T] = []
    try:
        for item in items:
            window.append(item)
            if len(window) == size:
                yield window
                window = []
    except DataError:
        if window:
            yield window
        raise
    if window:
        yield window


def length_batches(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Indices in batches of similar length, short sentences first.

    At most ``batch_size`` sentences and ``batch_size * PIECES_A_SENTENCE`` padded pieces a batch
    (a sentence longer than that stands alone).
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        padded = (len(batch) + 1) * lengths[index]
        if batch and (len(batch) == batch_size or padded > batch_size * PIECES_A_SENTENCE):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def source_tensors(
    rows: Sequence[Sequence[int]], device: torch.device
) -> tuple[Int[Tensor, "B M"], Bool[Tensor, "B M"]]:
    """Pieces without EOS as the padded source of a model, and True where a piece or EOS stands."""
    lengths = torch.tensor([len(row) + 1 for row in rows])
    source = torch.full((len(rows), int(lengths.max())), PAD)
    for place, row in zip(source, rows, strict=True):
        place[: len(row) + 1] = torch.tensor([*row, EOS])
    allowed = torch.arange(source.shape[1]) < lengths.unsqueeze(1)
    return source.to(device), allowed.to(device)
