"""Sentence pairs."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kakehashi.errors import DataError


@dataclass
class Pairs:
    """Parallel sentences: source[i] and target[i] say the same."""

    source: list[str]
    target: list[str]
    origin: str = ""
    """The file or data set they come from, for messages."""
    lines: Sequence[int] = field(default_factory=tuple)
    """Where each pair stands in `origin`: line numbers from 1 (the default), or the corpus's own
    sentence numbers."""

    def __post_init__(self) -> None:
        if len(self.source) != len(self.target):
            raise DataError(
                f"{self.origin or 'pairs'}: {len(self.source)} sources, {len(self.target)} targets"
            )
        if not self.lines:
            self.lines = range(1, len(self.source) + 1)

    def __len__(self) -> int:
        return len(self.source)

    def select(self, indices: Sequence[int]) -> "Pairs":
        """The pairs at `indices`, in that order, with their line numbers."""
        return Pairs(
            [self.source[i] for i in indices],
            [self.target[i] for i in indices],
            self.origin,
            [self.lines[i] for i in indices],
        )

    def place(self, i: int) -> tuple[str, int]:
        """Where pair `i` was read: the file or data set, and the line in it."""
        return self.origin, self.lines[i]

    def swapped(self) -> "Pairs":
        """Target as source and source as target."""
        return Pairs(self.target, self.source, self.origin, self.lines)

    def digest(self) -> str:
        """The SHA-256, in hexadecimal, of all sentences in their order and of nothing else."""
        digest = hashlib.sha256()
        for side in (self.source, self.target):
            # With the lengths ahead, no two lists of sentences give the same bytes.
            digest.update(np.fromiter(map(len, side), "<i8", len(side)).tobytes())
            for start in range(0, len(side), 100_000):
                part = "".join(side[start : start + 100_000])
                digest.update(part.encode("utf-8", "surrogatepass"))
        return digest.hexdigest()
