"""Both models, with every score, learn eight pairs by heart and say them word for word."""

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


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("name", ["transformer", "rnn"])
def test_eight_pairs_are_learnt_exactly(
    name: str, score: str, pairs: tuple[list[str], list[str], Tokenizer]
) -> None:
    sources, targets, tokenizer = pairs
    torch.manual_seed(1)
    model = build_model(config(name, score), tokenizer.vocab_size)
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
    limits = torch.full((PAIRS,), 60)
    with torch.inference_mode():
        encoded = model.encode(source, allowed)
    greedy = greedy_search(model, encoded, max_lengths=limits, length_penalty=1.0)
    beam = beam_search(model, encoded, beam=5, max_lengths=limits, length_penalty=1.0)
    assert tokenizer.decode_batch(best[0].ids for best in greedy) == targets
    assert tokenizer.decode_batch(best[0].ids for best in beam) == targets
