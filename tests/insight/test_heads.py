"""Heads made to look somewhere are named so; others are not; every figure has its formula."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from kakehashi.insight.heads import HeadStudy, Look, Pieces, entropies, study_heads
from kakehashi.insight.lexical import LexicalLinks
from kakehashi.models.interface import AttentionMaps

SENTENCE = Pieces(
    source=[4, 5, 6, 7, 8],
    target=[9, 10, 11, 12],
    source_text=["▁we", "▁see", ",", "▁you", "▁see"],
    target_text=["▁wir", "▁sehen", "▁dich", "."],
    links=((0, 0), (4, 1), (3, 2)),
)
M, N = len(SENTENCE.source) + 1, len(SENTENCE.target) + 1
ALIGNED = {0: 0, 1: 4, 2: 3}


class Engine:
    """Answers with maps that were made up."""

    def __init__(self, **maps: Tensor) -> None:
        self._maps = {name: [layer[None] for layer in given] for name, given in maps.items()}

    def maps(self, row: Any, target: Any) -> AttentionMaps:
        return AttentionMaps(**{"cross": [], **self._maps})


def _study(**maps: Tensor) -> list[HeadStudy]:
    """Maps are [layers H N M]."""
    return study_heads(Engine(**maps), [SENTENCE])  # type: ignore[arg-type]


def _pointing(rows: int, columns: int, where: Any, wrap: int | None = None) -> Tensor:
    """All weight of row n on column where(n), the last column where that is none."""
    weights = torch.zeros(rows, columns)
    for row in range(rows):
        at = where(row)
        weights[row, at if 0 <= at < columns else columns - 1] = 1.0
    return weights


@pytest.mark.parametrize(
    ("where", "look"),
    [
        (lambda n: n - 1, Look.previous),
        (lambda n: n, Look.same),
        (lambda n: n + 1, Look.next),
        (lambda n: 0, Look.first),
        (lambda n: M - 1, Look.end),
        (lambda n: 2 if n != 2 else 3, Look.punctuation),
    ],
)
def test_an_encoder_head_is_named_after_where_it_looks(where: Any, look: Look) -> None:
    (study,) = _study(encoder=_pointing(M, M, where)[None, None])
    assert study.kind is look
    assert study.shares[look].weight == pytest.approx(1.0)
    assert (study.entropy, study.normalised_entropy, study.largest) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("where", "look"),
    [(lambda n: n - 1, Look.previous), (lambda n: n, Look.same), (lambda n: 0, Look.first)],
)
def test_a_decoder_head_is_named_after_where_it_looks(where: Any, look: Look) -> None:
    (study,) = _study(decoder=_pointing(N, N, lambda n: max(0, where(n)))[None, None])
    assert study.kind is look
    assert study.shares[look].weight == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("where", "look"),
    [
        (lambda n: ALIGNED.get(n, 1), Look.aligned),
        (lambda n: ALIGNED.get(n - 1, 1), Look.aligned_input),
        (lambda n: M - 1, Look.end),
        (lambda n: 2, Look.punctuation),
    ],
)
def test_a_cross_head_is_named_after_where_it_looks(where: Any, look: Look) -> None:
    (study,) = _study(cross=_pointing(N, M, where)[None, None])
    assert study.kind is look


def test_a_head_that_looks_everywhere_alike_has_no_name() -> None:
    causal = torch.ones(N, N).tril()
    studies = _study(
        encoder=torch.full((1, 2, M, M), 1 / M),
        decoder=(causal / causal.sum(-1, keepdim=True)).expand(1, 2, N, N),
        cross=torch.full((1, 2, N, M), 1 / M),
    )
    assert [(s.attention, s.layer, s.head) for s in studies] == [
        (attention, 1, head) for attention in ("encoder", "decoder", "cross") for head in (1, 2)
    ]
    for study in studies:
        assert study.kind is None
        assert study.normalised_entropy == pytest.approx(1.0)
        for share in study.shares.values():
            assert share.weight == pytest.approx(share.uniform)
    assert studies[0].entropy == pytest.approx(np.log2(M))
    assert studies[0].largest == pytest.approx(1 / M)
    assert studies[2].entropy == pytest.approx(np.mean(np.log2([2, 3, 4, 5])))


def test_shares_are_means_over_the_rows_that_have_such_a_place() -> None:
    weights = torch.rand(2, 3, M, M).softmax(-1)
    for study in _study(encoder=weights):
        w = weights[study.layer - 1, study.head - 1].double().numpy()
        wanted = {
            Look.previous: [w[n, n - 1] for n in range(1, M - 1)],
            Look.same: [w[n, n] for n in range(M - 1)],
            Look.next: [w[n, n + 1] for n in range(M - 2)],
            Look.first: [w[n, 0] for n in range(2, M - 1)],
            Look.end: [w[n, M - 1] for n in range(M - 1)],
            Look.punctuation: [w[n, 2] for n in range(M - 1) if n != 2],
        }
        for look, values in wanted.items():
            share = study.shares[look]
            assert share.weight == pytest.approx(np.mean(values))
            assert (share.uniform, share.rows) == (pytest.approx(1 / M), len(values))


def test_sentences_are_one_text() -> None:
    """Two sentences have the means of both by rows."""
    weights = torch.rand(1, 1, M, M).softmax(-1)
    once = _study(encoder=weights)[0]
    engine: Any = Engine(encoder=weights)
    twice = study_heads(engine, [SENTENCE, SENTENCE])[0]
    assert twice.shares[Look.next].rows == 2 * once.shares[Look.next].rows
    assert twice.entropy == pytest.approx(once.entropy)
    assert twice.shares[Look.next].weight == pytest.approx(once.shares[Look.next].weight)


@pytest.mark.parametrize(
    ("weights", "bits"),
    [([1.0, 0.0], 0.0), ([0.5, 0.25, 0.25], 1.5), ([0.25] * 4, 2.0), ([0.0, 0.5, 0.5], 1.0)],
)
def test_entropy_is_in_bits(weights: list[float], bits: float) -> None:
    assert entropies(weights) == pytest.approx(bits)


class Words:
    """A tokenizer whose pieces are words."""

    vocab_size = 40

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        return [
            [self._numbers.setdefault(w, 10 + len(self._numbers)) for w in t.split()] for t in texts
        ]


def test_links_are_of_what_goes_together_in_the_text() -> None:
    words: Any = Words()
    pairs = [("rot", "red"), ("blau", "blue"), ("haus", "house"), ("boot", "boat"), ("ein", "a")]
    source, target = [], []
    for i, (one, other) in enumerate(pairs):
        for also, likewise in pairs[:i]:
            source += [f"{one} {also}", f"{also} {one}"]
            target += [f"{other} {likewise}", f"{other} {likewise}"]
    known = LexicalLinks(words, source, target)

    def links(one: str, other: str) -> list[tuple[int, int]]:
        (row,), (column,) = words.encode_batch([one]), words.encode_batch([other])
        return sorted(known.links(row, column))

    assert links("ein rot haus", "a red house") == [(0, 0), (1, 1), (2, 2)]
    assert links("haus rot", "red house") == [(0, 1), (1, 0)]
    assert links("rot rot haus", "red house") == [(2, 1)]  # which of both: not known
    assert links("rot neu", "red new") == [(0, 0)]
    assert links("", "red") == []
