from itertools import pairwise

import numpy as np
import pytest
import torch

from kakehashi.data import sampled as sampled_module
from kakehashi.data.batching import FlatCorpus
from kakehashi.data.pairs import Pairs
from kakehashi.data.sampled import SampledCorpus
from kakehashi.data.sampling import sampled
from kakehashi.data.tokenised import tokenise
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.data.tokenizer_config import SamplingConfig
from kakehashi.errors import ConfigError

SAMPLING = {
    "bpe": SamplingConfig(dropout=0.2),
    "unigram": SamplingConfig(alpha=0.3),
}


@pytest.fixture(scope="module")
def pairs(small_corpus) -> Pairs:
    return Pairs(small_corpus.source, small_corpus.target)


@pytest.fixture(scope="module", params=SAMPLING)
def tokenizer(request, pairs: Pairs) -> Tokenizer:
    return Tokenizer.train([*pairs.source, *pairs.target], vocab_size=600, kind=request.param)


@pytest.fixture(scope="module")
def tokens(pairs: Pairs, tokenizer: Tokenizer) -> FlatCorpus:
    return tokenise(pairs, tokenizer)


def corpus_of(tokens: FlatCorpus, tokenizer: Tokenizer, seed: int = 1) -> SampledCorpus:
    return sampled(tokens, tokenizer, SAMPLING[tokenizer.settings.kind], seed=seed)


@pytest.fixture(scope="module")
def corpus(tokens: FlatCorpus, tokenizer: Tokenizer) -> SampledCorpus:
    return corpus_of(tokens, tokenizer)


Drawn = dict[int, tuple[list[int], list[int]]]


def drawn_of(corpus: SampledCorpus, rows: np.ndarray, epoch: int) -> Drawn:
    """Each pair's source and target pieces."""
    flat = corpus.draw(rows, epoch)
    sides = [
        [ids[a:b].tolist() for a, b in pairwise(offsets)]
        for ids, offsets in (
            (flat.source_ids, flat.source_offsets),
            (flat.target_ids, flat.target_offsets),
        )
    ]
    return dict(zip(rows.tolist(), zip(*sides, strict=True), strict=True))


def everything(corpus: SampledCorpus, epoch: int) -> Drawn:
    return drawn_of(corpus, np.arange(len(corpus.tokens)), epoch)


def test_pieces_change_from_epoch_to_epoch_and_the_text_does_not(
    corpus: SampledCorpus, pairs: Pairs, tokenizer: Tokenizer
) -> None:
    epochs = [everything(corpus, epoch) for epoch in range(4)]
    for drawn in epochs:
        for k, (source, target) in drawn.items():
            assert tokenizer.decode(source) == pairs.source[k]
            assert tokenizer.decode(target) == pairs.target[k]
    for k in range(len(pairs)):
        if len(pairs.source[k]) > 20:
            assert len({tuple(drawn[k][0]) for drawn in epochs}) > 1
            assert len({tuple(drawn[k][1]) for drawn in epochs}) > 1


def test_pieces_are_a_function_of_seed_epoch_and_pair(
    corpus: SampledCorpus, tokens: FlatCorpus, tokenizer: Tokenizer
) -> None:
    expected = everything(corpus, 3)
    again = corpus_of(tokens, tokenizer)
    random = np.random.default_rng(5)
    for rows in np.array_split(random.permutation(len(tokens)), 13):
        for k, pieces in drawn_of(again, rows, 3).items():
            assert pieces == expected[k]
    assert everything(corpus_of(tokens, tokenizer, seed=2), 3) != expected


def test_source_and_target_are_drawn_apart(tokens: FlatCorpus, tokenizer: Tokenizer) -> None:
    twice = FlatCorpus(*[tokens.source_ids, tokens.source_offsets] * 2)
    drawn = everything(corpus_of(twice, tokenizer), 0)
    assert sum(source != target for source, target in drawn.values()) > len(drawn) / 2


def test_drawn_in_parts_or_not_at_all(corpus: SampledCorpus, monkeypatch) -> None:
    expected = everything(corpus, 0)
    monkeypatch.setattr(sampled_module, "AT_A_TIME", 17)
    assert everything(corpus, 0) == expected
    assert len(corpus.draw(np.arange(0), 0)) == 0
    growth = corpus.growth(np.arange(len(corpus.tokens)))
    assert 1.02 < min(growth) < max(growth) < 3


def test_all_pieces_of_drawn_targets_are_told_beforehand(corpus: SampledCorpus, tokens) -> None:
    possible = set(corpus.target_pieces(np.arange(len(tokens))).tolist())
    assert set(tokens.target_ids.tolist()) <= possible
    drawn = {
        i for epoch in range(9) for _, target in everything(corpus, epoch).values() for i in target
    }
    assert drawn <= possible
    assert not drawn <= set(tokens.target_ids.tolist()), "the test needs pieces that are new"


def test_a_tokenizer_of_the_other_kind_is_refused(tokens, tokenizer) -> None:
    other = SAMPLING["bpe" if tokenizer.settings.kind == "unigram" else "unigram"]
    with pytest.raises(ConfigError, match=r"tokenizer\.sampling\..* samples with a"):
        sampled(tokens, tokenizer, other, seed=1)


def test_sampling_leaves_the_global_random_state_alone(corpus: SampledCorpus) -> None:
    before, there = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    everything(corpus, 0)
    assert torch.equal(torch.get_rng_state(), before)
    assert np.array_equal(np.random.get_state()[1], there)  # noqa: NPY002
