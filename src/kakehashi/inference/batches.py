"""Which sentences of a window are decoded together."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from kakehashi.errors import DataError

PIECES_A_SENTENCE = 64
"""A batch of n sentences is allowed n times as many padded source pieces: fewer long sentences go
together, so that memory does not grow with their length."""

WINDOW = 32
"""Batches read ahead, so that sentences of like length can be decoded together."""

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
