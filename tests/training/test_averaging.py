"""Averages of weights against means worked out by hand."""

import pytest
import torch
from torch import nn

from kakehashi.errors import ConfigError, TrainingError
from kakehashi.training.averaging import WeightMean, mean_of_checkpoints, put_weights
from kakehashi.training.checkpoint import write_checkpoint
from kakehashi.training.config import AveragingConfig
from kakehashi.training.plan import Plan


def trajectory(n: int) -> list[torch.Tensor]:
    g = torch.Generator().manual_seed(0)
    return [torch.randn(3, 2, generator=g) for _ in range(n)]


def follow(config: AveragingConfig, weights: list[torch.Tensor]) -> WeightMean:
    model = nn.Linear(2, 3, bias=False)
    average = WeightMean(config, Plan(10, 0.1))
    for weight in weights:
        model.weight.data = weight.clone()
        average.add(model)
    return average


def test_mean_is_the_mean():
    weights = trajectory(7)
    average = follow(AveragingConfig("mean"), weights)
    torch.testing.assert_close(average.weights["weight"], torch.stack(weights).mean(0))


def test_ema_is_the_closed_form():
    weights, d = trajectory(5), 0.8
    average = follow(AveragingConfig("ema", decay=d), weights)
    shares = [d**4] + [(1 - d) * d ** (4 - i) for i in range(1, 5)]
    expected = sum(s * w for s, w in zip(shares, weights, strict=True))
    torch.testing.assert_close(average.weights["weight"], expected)


def test_state_goes_through_a_file(tmp_path):
    weights = trajectory(6)
    half = follow(AveragingConfig("mean"), weights[:3])
    torch.save(half.state_dict(), tmp_path / "state")
    other = WeightMean(AveragingConfig("mean"), Plan(10, 0.1))
    other.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
    model = nn.Linear(2, 3, bias=False)
    for weight in weights[3:]:
        model.weight.data = weight.clone()
        other.add(model)
    torch.testing.assert_close(other.weights["weight"], torch.stack(weights).mean(0))


def save(path, weights):
    state = {f"model.{name}": w for name, w in weights.items()} | {"other": torch.ones(1)}
    facts = {"state_dict": state, "global_step": 1, "kakehashi": {"seed": 1}}
    write_checkpoint(facts, path)
    return path


def test_mean_of_checkpoints(tmp_path):
    weights = trajectory(3)
    paths = [save(tmp_path / f"{i}.ckpt", {"weight": w}) for i, w in enumerate(weights)]
    mean = mean_of_checkpoints(paths)
    assert set(mean) == {"weight"}
    torch.testing.assert_close(mean["weight"], torch.stack(weights).mean(0))


def test_checkpoints_of_different_models_have_no_mean(tmp_path):
    a = save(tmp_path / "a.ckpt", {"weight": torch.ones(2)})
    b = save(tmp_path / "b.ckpt", {"weight": torch.ones(3)})
    with pytest.raises(TrainingError, match=r"b\.ckpt.*different models"):
        mean_of_checkpoints([a, b])


def test_put_weights_keeps_ties(tiny_model):
    weights = {name: torch.full_like(p, 0.5) for name, p in tiny_model.named_parameters()}
    put_weights(tiny_model, weights)
    assert tiny_model.output.weight is tiny_model.source_embedding.table.weight
    assert all((p == 0.5).all() for p in tiny_model.parameters())


def test_put_weights_refuses_what_does_not_fit(tiny_model):
    weights = dict(tiny_model.state_dict())
    name = next(n for n, _ in tiny_model.named_parameters())
    del weights[name]
    with pytest.raises(TrainingError, match=name):
        put_weights(tiny_model, weights)


@pytest.mark.parametrize("settings", [{"kind": "median"}, {"start": 1.0}, {"decay": 1.0}, {"k": 0}])
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(ConfigError, match=r"callbacks\.averaging"):
        AveragingConfig(**settings)
