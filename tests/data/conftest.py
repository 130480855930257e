"""Token lengths and flat corpora drawn at random."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from kakehashi.data.batching import FlatCorpus
from kakehashi.data.stream import Part
from kakehashi.data.subwords import Resegmenter, Segmentation, Speller, sentence_keys
from kakehashi.data.tokenizer import Tokenizer


def flat(source: Sequence[Sequence[int]], target: Sequence[Sequence[int]]) -> FlatCorpus:
    """A flat corpus of these rows."""
    arrays = []
    for side in (source, target):
        arrays.append(np.array([i for row in side for i in row], np.int32))
        arrays.append(np.cumsum([0, *map(len, side)], dtype=np.int64))
    return FlatCorpus(*arrays)


@pytest.fixture(scope="module", params=["de", "ja"])
def text(request, small_corpus, small_japanese_corpus) -> list[str]:
    """Both sides of a small corpus, of one in German and of one in Japanese."""
    corpus = small_corpus if request.param == "de" else small_japanese_corpus
    return [*corpus.source, *corpus.target]


@pytest.fixture(scope="session")
def redrawn() -> Callable[..., list[list[int]]]:
    """New pieces of each text, of the segmentation that a function makes of the speller."""

    def draw(
        tokenizer: Tokenizer,
        made: Callable[[Speller], Segmentation],
        texts: list[str],
        rows: Sequence[int] | None = None,
    ) -> list[list[int]]:
        speller = Speller(tokenizer)
        corpus = flat(tokenizer.encode_batch(texts), [[]] * len(texts))
        keys = sentence_keys(np.arange(len(texts)) if rows is None else np.array(rows), 5)
        ids, offsets = Resegmenter(speller, made(speller))(
            corpus.source_ids.astype(np.int64), corpus.source_offsets, keys
        )
        return [ids[start:end].tolist() for start, end in pairwise(offsets)]

    return draw


@pytest.fixture
def some_corpus() -> FlatCorpus:
    """211 pairs of 0 to 12 pieces, numbered from 4 on."""
    random = np.random.default_rng(7)
    rows = [random.integers(4, 97, random.integers(0, 13)).tolist() for _ in range(2 * 211)]
    return flat(rows[:211], rows[211:])


class Shards:
    """A stream whose shards are lists of pairs in memory."""

    name, version = "shards", "as it was"

    def __init__(self, shards: Sequence[Sequence[tuple[str, str]]], at_a_time: int = 7) -> None:
        self.shards, self.at_a_time = shards, at_a_time
        self.read: list[tuple[int, int]] = []
        """Shard and first row of every table that was asked for."""

    @property
    def n_shards(self) -> int:
        return len(self.shards)

    def tables(self, shard: int) -> Iterator[pa.Table]:
        rows = self.shards[shard]
        for start in range(0, len(rows), self.at_a_time):
            self.read.append((shard, start))
            part = rows[start : start + self.at_a_time]
            yield pa.table({"source": [s for s, _ in part], "target": [t for _, t in part]})

    def texts(self, part: Part) -> tuple[list[str], list[str]]:
        source, target = (part.table.column(k).to_pylist() for k in range(2))
        return source, target


@pytest.fixture(scope="session")
def shards_in_memory() -> type[Shards]:
    """Makes streams of lists of pairs."""
    return Shards


@pytest.fixture(scope="session")
def numbered() -> Callable[..., Shards]:
    """Makes streams of pairs that tell their shard and row, from the shards' sizes."""

    def make(sizes: Sequence[int], at_a_time: int = 7) -> Shards:
        rows = [[(f"{s} {r}", f"{r} {s}") for r in range(n)] for s, n in enumerate(sizes)]
        return Shards(rows, at_a_time)

    return make
