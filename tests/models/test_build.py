from typing import Any

import pytest
import torch

from kakehashi.models.build import build_model
from kakehashi.models.config import ModelConfig, RNNConfig, TransformerConfig
from kakehashi.models.rnn import RNNSearch
from kakehashi.models.transformer import Transformer

CASES: list[tuple[ModelConfig, type]] = [
    (TransformerConfig(d_model=30, n_heads=3, d_feedforward=17), Transformer),
    (RNNConfig(d_embedding=11, d_maxout=11, d_hidden=13, d_attention=7), RNNSearch),
]


@pytest.mark.parametrize(("config", "kind"), CASES)
def test_a_model_knows_what_it_was_built_from(config: ModelConfig, kind: type) -> None:
    model = build_model(config, 29)
    assert type(model) is kind
    assert model.config == config
    assert model.vocab_size == model.output.out_features == 29
    assert model.training


@pytest.mark.parametrize(("config", "kind"), CASES)
def test_the_seed_decides_the_weights(config: ModelConfig, kind: type) -> None:
    def weights(seed: int) -> dict[str, Any]:
        torch.manual_seed(seed)
        return build_model(config, 29).state_dict()

    first, again, other = weights(1), weights(1), weights(2)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["output.weight"], other["output.weight"])


@pytest.mark.parametrize(("config", "kind"), CASES)
def test_a_fresh_model_is_unsure(config: ModelConfig, kind: type) -> None:
    """Its first loss is near that of guessing, log V: training starts from a sane place."""
    model = build_model(config, 997).eval()
    source = torch.randint(4, 997, (11, 7))
    target = torch.randint(4, 997, (11, 5))
    logits = model(source, torch.ones(11, 7, dtype=torch.bool), target)
    answers = torch.randint(4, 997, (11, 5))
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), answers.flatten())
    assert 6.5 < loss.item() < 8.0
