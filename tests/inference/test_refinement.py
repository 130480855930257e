"""Alignments of a whole text: what is counted, that directions are alike, that it mends errors."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

from kakehashi.inference import refinement
from kakehashi.inference.hidden_markov import expected_states, first_jumps
from kakehashi.inference.refinement import FLOOR, PRIOR, Knowledge, counted, read_text, refine

WORDS = [f"{name}{ending}" for name in ("hund", "katz", "maus") for ending in ("en", "es", "em")]
Matrices = list[np.ndarray]


@pytest.fixture(scope="module")
def text() -> tuple[list[tuple[str, str]], Matrices, Matrices]:
    """60 pairs: the translation of a word is its capitals turned round; neighbours change places.

    Attention is right by little, and at a tenth of the words wrong by much.
    """
    generator = np.random.default_rng(5)
    pairs, forward, backward = list[tuple[str, str]](), [], []
    for _ in range(60):
        words = [str(word) for word in generator.choice(WORDS, 6, replace=False)]
        order = [1, 0, 2, 4, 3, 5]
        pairs.append((" ".join(words), " ".join(words[at].upper()[::-1] for at in order)))
        sides = []
        for right in (np.eye(6)[order], np.eye(6)[order].T):
            seen = 0.5 * right + 0.15 * generator.random((6, 6))
            if generator.random() < 0.6:
                seen[generator.integers(6)] = np.eye(6)[generator.integers(6)]
            sides.append((seen / seen.sum(axis=1, keepdims=True)).astype(np.float16))
        forward.append(sides[0])
        backward.append(sides[1])
    return pairs, forward, backward


def wrong(links: list[frozenset[tuple[int, int]]]) -> int:
    right = {(1, 0), (0, 1), (2, 2), (4, 3), (3, 4), (5, 5)}
    return sum(len(right ^ found) for found in links)


def test_counting_over_the_text_mends_what_attention_has_wrong(text: Any) -> None:
    pairs, forward, backward = text
    looked = [frozenset((int(i), j) for j, i in enumerate(seen.argmax(axis=1))) for seen in forward]
    refined = refine(*text, rounds=3)
    assert wrong(looked) > 30
    assert wrong(refined) <= 2
    # case never counts; of all letters, the first ones are enough where they tell words apart
    upper = [(source.upper(), target.lower()) for source, target in pairs]
    assert refine(upper, forward, backward, rounds=3) == refined
    assert refine(*text, rounds=3, prefix=6) == refined


def test_the_other_way_round_gives_the_same_links(text: Any) -> None:
    pairs, forward, backward = text
    turned = refine([(target, source) for source, target in pairs], backward, forward, rounds=2)
    assert [frozenset((i, j) for j, i in links) for links in turned] == refine(*text, rounds=2)


def test_a_round_counts_where_both_directions_agree(text: Any) -> None:
    """By dictionaries, a pair at a time, with a prefix that joins words."""
    pairs, forward, backward = (each[:7] for each in text)
    expected = Counter[tuple[str, str]]()
    for (source, target), there, back in zip(pairs, forward, backward, strict=True):
        weights = np.sqrt((there.astype(float) + FLOOR) * (back.T.astype(float) + FLOOR))
        sizes = np.array([6])
        empty = np.full((1, 6), FLOOR)
        both = (
            expected_states(weights[None], empty, sizes, sizes, first_jumps()).posterior[0]
            * expected_states(weights.T[None], empty, sizes, sizes, first_jumps()).posterior[0].T
        )
        for j, word in enumerate(target.split()):
            for i, other in enumerate(source.split()):
                expected[other.lower()[:4], word.lower()[:4]] += both[j, i]
    read = read_text(pairs, forward, backward, 4)
    known = counted(read, Knowledge()).lexicon
    assert known is not None
    targets = {target for _, target in expected}
    totals = Counter[str]()
    for (source, _), count in expected.items():
        totals[source] += count
    digamma = [
        torch.tensor(count + PRIOR, dtype=torch.float64).digamma()
        - torch.tensor(totals[source] + PRIOR * (len(targets) + 1), dtype=torch.float64).digamma()
        for (source, _), count in expected.items()
    ]
    assert sorted(known[0]) == pytest.approx(sorted(math.exp(each) for each in digamma), rel=1e-4)


def test_batches_change_nothing_and_blank_sides_have_no_links(
    text: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs, forward, backward = text
    want = refine(*text, rounds=1)
    monkeypatch.setattr(refinement, "PAIRS", 7)
    assert refine(*text, rounds=1) == want
    nothing = np.zeros((0, 6), np.float16)
    more = [*pairs, (pairs[0][0], "\u200b"), (" ", "")]
    hidden = np.ones((1, 6), np.float16)
    found = refine(
        more,
        [*forward, hidden, nothing[:, :0]],
        [*backward, hidden.T, nothing[:, :0]],
        rounds=1,
    )
    assert found == [*want, frozenset(), frozenset()]
    assert refine([(" ", "")], [nothing[:, :0]], [nothing[:, :0]], rounds=1) == [frozenset()]
