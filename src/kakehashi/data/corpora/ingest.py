"""Files into memory-mapped text: read once, line by line, never in memory as a whole."""

from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from kakehashi.data.pairfiles import Row
from kakehashi.data.pairs import Pairs, Shard
from kakehashi.data.progress import Meter
from kakehashi.data.reading import Watch
from kakehashi.data.texts import Texts, TextWriter
from kakehashi.errors import DataError


class Source(Protocol):
    """Something that pairs are read from."""

    @property
    def name(self) -> str:
        """For messages and the ledger."""

    @property
    def size(self) -> int:
        """The work of reading it, in whatever `rows` reports: bytes on disk, or rows."""

    def rows(self, watch: Watch | None = None) -> Iterable[Row]:
        """Line, source, target; `watch` is told of the work that was done."""


def ingest(shards: Sequence[Source], origin: str, folder: Path, split: str) -> Pairs:
    """All pairs of the shards, one after the other; their text is written into `folder`.

    Raises DataError like the shards' `rows`, and when there is no pair in any of them.
    """
    lines = array("q")
    kept: list[Shard] = []
    before = 0
    with (
        TextWriter(folder, f"{split}-source") as source,
        TextWriter(folder, f"{split}-target") as target,
        Meter(f"Reading {split}", "lines", sum(shard.size for shard in shards)) as meter,
    ):
        for shard in shards:
            kept.append(Shard(shard.name, before))
            line = 0
            for line, source_text, target_text in meter.over(shard.rows(meter.did)):
                source.add(source_text)
                target.add(target_text)
                lines.append(before + line)
            before += line
    if not len(lines):
        raise DataError(f"{origin}: there are no pairs in it")
    return Pairs(
        Texts.load(folder, f"{split}-source"),
        Texts.load(folder, f"{split}-target"),
        origin,
        np.array(lines, np.int64),
        tuple(kept) if len(kept) > 1 else (),
    )
