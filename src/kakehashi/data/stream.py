"""A training text that is read as it comes and never kept: its shards, and what is done to pairs.

Pair r (from 1) of shard s (from 0) has the number ``s * SHARD + r`` wherever pairs are numbered:
it says where to find the pair, and depends on no process, no worker and no order.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from kakehashi.data.ledger import Ledger
from kakehashi.data.pairs import Pairs, Shard

if TYPE_CHECKING:
    import pyarrow as pa

SHARD = 1 << 40
"""More pairs than any shard has."""

Screen = Callable[[Pairs, Ledger], tuple[Pairs, int]]
"""The pairs that are trained on, and how many were held out; the rest is in the ledger."""


class Part(NamedTuple):
    """Neighbouring rows of a shard."""

    shard: int
    row: int
    """Rows of the shard before the first of these."""
    table: "pa.Table"


class PairStream(Protocol):
    """Somewhere that pairs can be read from again and again, in a number of shards."""

    @property
    def name(self) -> str:
        """For messages and the ledger."""

    @property
    def version(self) -> str:
        """Another one when any of what is read has changed."""

    @property
    def n_shards(self) -> int:
        """At least 1."""

    def tables(self, shard: int) -> "Iterator[pa.Table]":
        """The rows of a shard from the first on, some at a time.

        Raises CorpusError where reading breaks off.
        """

    def texts(self, part: Part) -> tuple[list[str], list[str]]:
        """Sources and targets; raises DataError for what is not text."""


@dataclass(frozen=True)
class TrainingStream:
    """All training pairs of a corpus, as they are stored, and which of them are trained on."""

    pairs: PairStream
    screen: Screen
    buffer: int
    """Pairs that are shuffled together."""
    sample: int
    """Pairs that were read for the tokenizer and all else that has to be known beforehand."""


def pairs_of(stream: PairStream, parts: Sequence[Part]) -> Pairs:
    """The rows as pairs that know their places, none left out."""
    sources: list[str] = []
    targets: list[str] = []
    for part in parts:
        source, target = stream.texts(part)
        sources += source
        targets += target
    numbers = [
        np.arange(1, len(part.table) + 1) + (part.shard * SHARD + part.row) for part in parts
    ]
    lines = np.concatenate([np.empty(0, np.int64), *numbers])
    return Pairs(sources, targets, stream.name, lines, shards_of(stream))


def shards_of(stream: PairStream) -> tuple[Shard, ...]:
    """The shards as `Pairs` name them; none if there is but one."""
    if stream.n_shards == 1:
        return ()
    return tuple(
        Shard(shard_name(stream, shard), shard * SHARD) for shard in range(stream.n_shards)
    )


def shard_name(stream: PairStream, shard: int) -> str:
    """For messages and the ledger."""
    if stream.n_shards == 1:
        return stream.name
    return f"{stream.name}, shard {shard + 1} of {stream.n_shards}"
