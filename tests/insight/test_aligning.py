"""The attention that aligns best is found, and how well it does is looked at elsewhere."""

from typing import Any

import pytest
import torch

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.errors import ConfigError, EvaluationError
from kakehashi.evaluation.alignment import alignment_score
from kakehashi.evaluation.links import Gold, Symmetrisation, symmetrise, turned_round
from kakehashi.inference.bundle import Bundle
from kakehashi.inference.settings import BundleConfig
from kakehashi.inference.translator import Translator
from kakehashi.insight.aligning import every_alignment, probe, probe_together
from kakehashi.models.alignment import AlignmentChoice
from kakehashi.models.build import build_model
from kakehashi.models.config import ModelConfig, RNNConfig, TransformerConfig


def translator(model: ModelConfig, corpus: Any) -> Translator:
    tokenizer = Tokenizer.train([*corpus.source, *corpus.target], vocab_size=401)
    config = BundleConfig(model, 401, "de", "en", 53, DecodingConfig(batch_size=3), "", "")
    torch.manual_seed(5)
    built = build_model(model, 401).eval()
    with torch.no_grad():
        for parameter in built.parameters():
            if parameter.dim() > 1:
                parameter.mul_(3.0).add_(0.05 * torch.randn_like(parameter))
    return Translator.of(Bundle(built, tokenizer, config))


@pytest.fixture(scope="module")
def transformer(small_corpus: Any) -> Translator:
    return translator(
        TransformerConfig(
            encoder_layers=1, decoder_layers=2, d_model=24, d_feedforward=29, n_heads=3
        ),
        small_corpus,
    )


@pytest.fixture(scope="module")
def pairs(small_corpus: Any) -> list[tuple[str, str]]:
    texts = zip(small_corpus.source[:7], small_corpus.target[:7], strict=True)
    return [*texts, (" ", "nothing here")]


def test_each_way_is_what_align_says_by_it(
    transformer: Translator, pairs: list[tuple[str, str]]
) -> None:
    found = every_alignment(transformer, pairs)
    ways = [(n, h, s) for n in (1, 2) for h in (None, 1, 2, 3) for s in (0, 1)]
    assert list(found) == [AlignmentChoice(*way) for way in ways]
    for choice, links in found.items():
        transformer.read_alignments_from(choice)
        told = [frozenset(one.word_alignment) for one in transformer.align(pairs)]
        assert links == told
    assert len({tuple(links) for links in found.values()}) > 8  # they differ


def test_the_one_head_of_a_recurrent_model_is_its_mean(
    small_corpus: Any, pairs: list[tuple[str, str]]
) -> None:
    recurrent = translator(
        RNNConfig(d_embedding=14, d_hidden=17, d_attention=11, d_maxout=14), small_corpus
    )
    found = every_alignment(recurrent, pairs)
    assert list(found) == [AlignmentChoice(1, None, 0), AlignmentChoice(1, None, 1)]


def test_what_made_the_gold_of_odd_lines_is_best_and_is_measured_on_even_ones(
    transformer: Translator, pairs: list[tuple[str, str]]
) -> None:
    found = every_alignment(transformer, pairs)
    odd, even = AlignmentChoice(1, 2, 1), AlignmentChoice(2, 3, 0)
    gold = [Gold(*[found[even if at % 2 else odd][at]] * 2) for at in range(len(pairs))]
    transformer.read_alignments_from(even)
    probed = probe(transformer, pairs, gold)
    assert probed.choice == odd and probed.table[0].score.aer == 0.0
    assert [one.score.aer for one in probed.table] == sorted(one.score.aer for one in probed.table)
    assert probed.usual.aer == 0.0  # even lines, as the model is read so far
    want = alignment_score([found[odd][at] for at in (1, 3, 5, 7)], gold[1::2])
    assert probed.held_out == want and want.aer > 0.0
    assert probed.everywhere == alignment_score(found[odd], gold)
    assert probed.links == found[odd]


def test_two_directions_are_joined_the_best_way() -> None:
    forward = [frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (2, 1)})] * 2
    backward = [frozenset({(0, 0), (2, 2)}), frozenset({(0, 0), (1, 2)})] * 2
    either = [
        symmetrise(f, frozenset((i, j) for j, i in b), Symmetrisation.union)
        for f, b in zip(forward, backward, strict=True)
    ]
    gold = [Gold(links, links) for links in either]
    joined = probe_together(forward, backward, gold)
    assert joined.table[0][0] is Symmetrisation.union
    assert joined.held_out.aer == joined.everywhere.aer == 0.0


def test_turned_round_gold_is_the_same_links() -> None:
    gold = Gold(frozenset({(0, 3)}), frozenset({(0, 3), (2, 1)}))
    assert turned_round(gold) == Gold(frozenset({(3, 0)}), frozenset({(3, 0), (1, 2)}))
    assert turned_round(turned_round(gold)) == gold


def test_what_cannot_be_probed_is_said(
    transformer: Translator, pairs: list[tuple[str, str]]
) -> None:
    one = Gold(frozenset({(0, 0)}), frozenset({(0, 0)}))
    with pytest.raises(EvaluationError, match="8 sentence pairs and gold alignments of 2"):
        probe(transformer, pairs, [one, one])
    with pytest.raises(EvaluationError, match="takes two or more"):
        probe(transformer, pairs[:1], [one])

    class Other:
        name = "other"

    other = Translator(Other(), transformer.tokenizer, transformer.config)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="other engine does not show"):
        every_alignment(other, pairs)
