"""Token lengths and flat corpora drawn at random."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest

from kakehashi.data.batching import FlatCorpus
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
