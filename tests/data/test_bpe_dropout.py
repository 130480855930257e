"""BPE-dropout against SentencePiece's own BPE, and against the algorithm of the paper in loops."""

import random
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from kakehashi.data.bpe_dropout import BPEDropout
from kakehashi.data.subwords import Speller
from kakehashi.data.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def tokenizer(text: list[str]) -> Tokenizer:
    return Tokenizer.train(text, vocab_size=600, kind="bpe", character_coverage=1.0)


@pytest.fixture(scope="module")
def drawn(redrawn) -> Callable[..., list[list[int]]]:
    def draw(tokenizer: Tokenizer, texts: list[str], dropout: float, rows=None) -> list[list[int]]:
        return redrawn(tokenizer, lambda s: BPEDropout(tokenizer, s, dropout), texts, rows)

    return draw


def test_without_dropout_it_is_sentencepieces_bpe(
    tokenizer: Tokenizer, text: list[str], drawn
) -> None:
    assert drawn(tokenizer, text, 0.0) == tokenizer.encode_batch(text)


def test_every_draw_spells_the_text(tokenizer: Tokenizer, text: list[str], drawn) -> None:
    for dropout in (0.1, 0.5):
        rows = drawn(tokenizer, text, dropout)
        assert tokenizer.decode_batch(rows) == text
        assert rows != tokenizer.encode_batch(text)


def test_almost_certain_dropout_leaves_characters(
    tokenizer: Tokenizer, text: list[str], drawn
) -> None:
    rows = drawn(tokenizer, text, 1 - 1e-12)
    assert [len(row) for row in rows] == [len(line) + 1 for line in text]


def longest_run(tokenizer: Tokenizer, text: list[str]) -> str:
    """The longest word, up to nine letters, that is one run."""
    speller = Speller(tokenizer)
    words = sorted({w[:9] for line in text for w in line.split()}, key=lambda w: (-len(w), w))
    for word in words:
        ids = np.array(tokenizer.encode(word))
        if speller.runs(ids, np.array([0, len(ids)])).lengths.tolist() == [len(word) + 1]:
            return word
    raise AssertionError("no word is one run")


def algorithm_1(
    priority: dict[str, float], word: str, p: float, rng: random.Random
) -> tuple[str, ...]:
    """Provilkov et al. (2020), Algorithm 1, as printed."""
    current = list(word)
    while True:
        possible = [k for k in range(len(current) - 1) if current[k] + current[k + 1] in priority]
        merges = [k for k in possible if rng.random() >= p]
        if not merges:
            return tuple(current)
        best = max(merges, key=lambda k: (priority[current[k] + current[k + 1]], -k))
        current[best : best + 2] = [current[best] + current[best + 1]]


@pytest.mark.parametrize("p", [0.1, 0.4])
def test_segmentations_are_as_likely_as_in_the_paper(small_corpus, p: float, drawn) -> None:
    text = [*small_corpus.source, *small_corpus.target]
    tokenizer = Tokenizer.train(text, vocab_size=600, kind="bpe")
    word, n = longest_run(tokenizer, text), 20_000
    rng = random.Random(3)
    pieces, scores = tokenizer.pieces(range(600)), tokenizer.scores()
    priority = {pieces[i]: float(scores[i]) for i in tokenizer.ordinary_pieces()}
    expected = Counter(algorithm_1(priority, f"▁{word}", p, rng) for _ in range(n))
    rows = drawn(tokenizer, [word] * n, p)
    got = Counter(tuple(tokenizer.pieces(row)) for row in rows)
    assert len(expected) > 5
    for segmentation in expected.keys() | got.keys():
        a, b = expected[segmentation], got[segmentation]
        # both counts are drawn: six standard deviations of their difference
        assert abs(a - b) <= 6 * np.sqrt(a + b + 1), segmentation


def test_a_draw_depends_on_its_own_sentence_and_key_alone(tokenizer, text, drawn) -> None:
    together = drawn(tokenizer, text, 0.3)
    for k in (0, 17, 41):
        assert drawn(tokenizer, [text[k]], 0.3, [k]) == [together[k]]
    assert drawn(tokenizer, text, 0.3, range(1, len(text) + 1)) != together
