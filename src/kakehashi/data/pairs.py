"""Sentence pairs."""

import hashlib
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kakehashi.data.texts import Places, Texts, chunks_of, sizes_of
from kakehashi.errors import DataError


@dataclass(frozen=True)
class Shard:
    """One of the files of a corpus that lies in several."""

    name: str
    before: int
    """Lines of the shards before it: where `Pairs.lines` starts to count its own."""


@dataclass
class Pairs:
    """Parallel sentences: source[i] and target[i] say the same."""

    source: Sequence[str]
    target: Sequence[str]
    origin: str = ""
    """The file or data set they come from, for messages."""
    lines: Sequence[int] | Places = field(default_factory=tuple)
    """Where each pair stands in `origin`: line numbers from 1 (the default), or the corpus's own
    sentence numbers. Over several files the count goes on; `place` takes it apart."""
    shards: Sequence[Shard] = ()
    """The files, where there are several."""

    def __post_init__(self) -> None:
        if len(self.source) != len(self.target):
            raise DataError(
                f"{self.origin or 'pairs'}: {len(self.source)} sources, {len(self.target)} targets"
            )
        if not len(self.lines):
            self.lines = range(1, len(self.source) + 1)

    def __len__(self) -> int:
        return len(self.source)

    def place(self, i: int) -> tuple[str, int]:
        """The file (or data set) that pair i stands in, and its line there."""
        line = int(self.lines[i])
        if not self.shards:
            return self.origin, line
        shard = self.shards[self.shard_of(line)]
        return shard.name, line - shard.before

    def shard_of(self, line: int) -> int:
        """Which of the shards a number of `lines` lies in."""
        return bisect_left(self.shards, line, key=lambda shard: shard.before) - 1

    def select(self, indices: Sequence[int] | Places) -> "Pairs":
        """The pairs at `indices`, in that order, with their line numbers."""
        return Pairs(
            _taken(self.source, indices),
            _taken(self.target, indices),
            self.origin,
            np.asarray(self.lines)[np.asarray(indices, np.int64)],
            self.shards,
        )

    def swapped(self) -> "Pairs":
        """Target as source and source as target."""
        return Pairs(self.target, self.source, self.origin, self.lines, self.shards)

    def digest(self) -> str:
        """The SHA-256, in hexadecimal, of all sentences in their order and of nothing else."""
        digest = hashlib.sha256()
        for side in (self.source, self.target):
            # With the lengths ahead, no two lists of sentences give the same bytes.
            digest.update(len(side).to_bytes(8, "little"))
            digest.update(sizes_of(side).astype("<i8").tobytes())
            for part in chunks_of(side):
                digest.update(part)
        return digest.hexdigest()


def _taken(texts: Sequence[str], indices: Sequence[int] | Places) -> Sequence[str]:
    if isinstance(texts, Texts):
        return texts.take(np.asarray(indices, np.int64))
    return [texts[i] for i in indices]
