"""The lexicon against literal loops and against a language whose dictionary is known."""

import numpy as np
import torch
from torch import nn

from kakehashi.data.batching import FlatCorpus
from kakehashi.symbols import EOS
from kakehashi.training import lexicon as lexicon_module
from kakehashi.training.lexicon import (
    align_embeddings,
    aligned_vectors,
    learn_lexicon,
)


def flat(pairs: list[tuple[list[int], list[int]]]) -> FlatCorpus:
    def side(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
        offsets = np.cumsum([0] + [len(row) for row in rows]).astype(np.int64)
        return np.array([i for row in rows for i in row], dtype=np.int32), offsets

    return FlatCorpus(*side([s for s, _ in pairs]), *side([t for _, t in pairs]))


def expected_counts(
    pairs: list[tuple[list[int], list[int]]], iterations: int
) -> dict[tuple[int, int], float]:
    """IBM Model 1 as the textbook writes it: p(t | s), every source word a candidate."""
    pairs = [([*s, EOS], [*t, EOS]) for s, t in pairs]
    p = {(a, b): 1.0 for s, t in pairs for a in s for b in t}
    count: dict[tuple[int, int], float] = {}
    for _ in range(iterations):
        count = dict.fromkeys(p, 0.0)
        for s, t in pairs:
            for b in t:
                norm = sum(p[a, b] for a in s)
                for a in s:
                    count[a, b] += p[a, b] / norm
        total: dict[int, float] = {}
        for (a, _), c in count.items():
            total[a] = total.get(a, 0.0) + c
        p = {(a, b): c / total[a] for (a, b), c in count.items()}
    return count


PAIRS = [([5, 7, 5], [11, 13]), ([7], [13, 13, 17]), ([5, 9], [17]), ([9, 7], [11, 17])]


def test_counts_are_those_of_model_1_in_both_directions() -> None:
    lexicon = learn_lexicon(flat(PAIRS), 19, iterations=3)
    forward = expected_counts(PAIRS, 3)
    backward = expected_counts([(t, s) for s, t in PAIRS], 3)
    got = {
        (int(a), int(b)): c
        for a, b, c in zip(lexicon.source, lexicon.target, lexicon.expected, strict=True)
    }
    assert got.keys() == forward.keys()
    for (a, b), count in got.items():
        assert np.isclose(count, np.sqrt(forward[a, b] * backward[b, a]))


def dictionary_language(words: int, sentences: int) -> list[tuple[list[int], list[int]]]:
    """Each word w is translated word + w, in another order."""
    random = np.random.default_rng(7)
    pairs = []
    for _ in range(sentences):
        source = random.integers(4, 4 + words, size=random.integers(2, 8))
        pairs.append((source.tolist(), random.permutation(source + words).tolist()))
    return pairs


def test_translations_start_close_and_others_far_apart() -> None:
    words = 43
    pairs = dictionary_language(words, 600)
    vocab = 4 + 2 * words
    vectors = aligned_vectors(learn_lexicon(flat(pairs), vocab), vocab, 101, seed=3)
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(vocab))
    cosine = vectors @ vectors.T
    source = torch.arange(4, 4 + words)
    translations = cosine[source, source + words]
    assert translations.min() > 0.6
    nearest = cosine[source].scatter(1, source.unsqueeze(1), -1.0).argmax(1)
    assert torch.equal(nearest, source + words)


def test_every_table_of_a_model_is_set_and_the_seed_decides() -> None:
    lexicon = learn_lexicon(flat(dictionary_language(11, 60)), 26)
    model = nn.ModuleDict({"a": nn.Embedding(26, 13), "b": nn.Embedding(26, 7)})
    align_embeddings(model, lexicon, 26, seed=1)
    first = [p.clone() for p in model.parameters()]
    align_embeddings(model, lexicon, 26, seed=1)
    assert all(torch.equal(a, b) for a, b in zip(first, model.parameters(), strict=True))
    align_embeddings(model, lexicon, 26, seed=2)
    assert not any(torch.equal(a, b) for a, b in zip(first, model.parameters(), strict=True))


def test_more_places_than_are_counted_are_thinned_out_evenly(monkeypatch) -> None:
    many = PAIRS * 30
    places = sum((len(s) + 1) * (len(t) + 1) for s, t in many)
    step = -(-places // 300)
    assert step > 3
    few = learn_lexicon(flat(many[::step]), 19)
    monkeypatch.setattr(lexicon_module, "PLACES", 300)
    thinned = learn_lexicon(flat(many), 19)
    for one, other in zip(few, thinned, strict=True):
        assert np.array_equal(one, other)
