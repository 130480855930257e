"""Both models, with every score, learn eight pairs by heart and say them word for word."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from kakehashi.data.reading import read_lines
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.beam import beam_search
from kakehashi.decoding.greedy import greedy_search
from kakehashi.models.build import build_model
from kakehashi.models.config import RNNConfig, ScoreConfig, TransformerConfig
from kakehashi.symbols import BOS, EOS, PAD
from kakehashi.training.config import OptimizerConfig
from kakehashi.training.objective import cross_entropy
from kakehashi.training.optimizer import build_optimizer

CORPUS = Path(__file__).parents[1] / "corpus"
PAIRS, UPDATES = 8, 120
SCORES = ("dot", "scaled_dot", "general", "additive")


def config(model: str, score: str) -> Any:
    if model == "rnn":
        return RNNConfig(
            d_embedding=32,
            d_hidden=48,
            d_attention=32,
            d_maxout=32,
            dropout=0.0,
            score=ScoreConfig(score),
        )
    return TransformerConfig(
        encoder_layers=1,
        decoder_layers=1,
        d_model=32,
        d_feedforward=64,
        n_heads=2,
        dropout=0.0,
        score=ScoreConfig(score),
    )


def padded(rows: list[list[int]]) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


@pytest.fixture(scope="module")
def pairs() -> tuple[list[str], list[str], Tokenizer]:
    source, target = (read_lines(CORPUS / f"small.{side}") for side in ("de", "en"))
    tokenizer = Tokenizer.train([*source, *target], vocab_size=450)
    return source[:PAIRS], target[:PAIRS], tokenizer


def learn(model: Any, tokenizer: Tokenizer, sources: list[str], targets: list[str]) -> list[Any]:
    """Train until the pairs are known by heart; returns what greedy and beam search say."""
    optimizer = build_optimizer(model, OptimizerConfig(name="adamw", learning_rate=0.01))
    decay = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda update: 1 - update / UPDATES)
    source = padded([[*ids, EOS] for ids in tokenizer.encode_batch(sources)])
    target = padded([[BOS, *ids, EOS] for ids in tokenizer.encode_batch(targets)])
    allowed, real = source != PAD, target[:, 1:] != PAD
    for _ in range(UPDATES):
        features = model.features(source, allowed, target[:, :-1])
        loss = cross_entropy(features[real], model.output.weight, None, target[:, 1:][real])
        optimizer.zero_grad()
        loss.smoothed.backward()
        optimizer.step()
        decay.step()
    model.eval()
    limits = torch.full((len(sources),), 60)
    with torch.inference_mode():
        encoded = model.encode(source, allowed)
    greedy = greedy_search(model, encoded, max_lengths=limits, length_penalty=1.0)
    # A model that is sure of one text has nothing but nonsense in the other places of the beam, and
    # five pieces of nonsense may have ended before the text has.
    beam = beam_search(model, encoded, beam=5, max_lengths=limits, length_penalty=1.0, patience=2.0)
    return [[best[0].ids for best in found] for found in (greedy, beam)]


@pytest.mark.parametrize(
    ("name", "score"),
    [
        pytest.param(
            name,
            score,
            marks=[pytest.mark.slow]
            * (score != ("scaled_dot" if name == "transformer" else "additive")),
        )
        for name in ("transformer", "rnn")
        for score in SCORES
    ],
)
def test_eight_pairs_are_learnt_exactly(
    name: str, score: str, pairs: tuple[list[str], list[str], Tokenizer]
) -> None:
    sources, targets, tokenizer = pairs
    torch.manual_seed(1)
    model = build_model(config(name, score), tokenizer.vocab_size)
    for ids in learn(model, tokenizer, sources, targets):
        assert tokenizer.decode_batch(ids) == targets


@pytest.mark.parametrize("name", ["transformer", pytest.param("rnn", marks=pytest.mark.slow)])
def test_symbols_come_through_whole_and_in_order(name: str) -> None:
    """Placeholders and markup, translated by a model that has seen them on both sides."""
    symbols = ["{name}", "{place}", "%s", "<b>", "</b>"]
    pairs = [
        ("Hallo {name}!", "Hello {name}!"),
        ("{name} wohnt in {place}.", "{name} lives in {place}."),
        ("In {place} wohnt {name}.", "{name} lives there, in {place}."),
        ("%s von %s Dateien", "%s of %s files"),
        ("<b>Achtung</b>, {name}!", "<b>Beware</b>, {name}!"),
        ("Das ist <b>wichtig</b>.", "That is <b>important</b>."),
        ("{place} ist %s Kilometer entfernt.", "{place} is %s kilometres away."),
        ("Drück <b>%s</b>", "Press <b>%s</b>"),
    ]
    sources, targets = (list(side) for side in zip(*pairs, strict=True))
    tokenizer = Tokenizer.train(
        [*sources, *targets], vocab_size=310, symbols=symbols, character_coverage=1.0
    )
    torch.manual_seed(1)
    model = build_model(config(name, "dot"), tokenizer.vocab_size)
    for found in learn(model, tokenizer, sources, targets):
        assert tokenizer.decode_batch(found) == targets
        for ids, target in zip(found, targets, strict=True):
            pieces = [piece for piece in tokenizer.pieces(ids) if piece in symbols]
            expected = re.findall("|".join(map(re.escape, symbols)), target)
            assert pieces == expected
