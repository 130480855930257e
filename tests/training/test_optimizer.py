"""Muon against a decomposition and a loop of its own; AdamW against torch's."""

import copy
import io

import pytest
import torch
from torch import nn

from kakehashi.errors import ConfigError
from kakehashi.models.build import build_model
from kakehashi.models.config import RNNConfig, TransformerConfig
from kakehashi.training.optimizer import (
    Muon,
    OptimizerConfig,
    build_optimizer,
    orthogonalise,
    split_parameters,
)


def small_model() -> nn.Module:
    torch.manual_seed(0)
    config = TransformerConfig(
        encoder_layers=2, decoder_layers=1, d_model=8, d_feedforward=11, n_heads=2, norm="layer"
    )
    return build_model(config, 13)


def set_gradients(model: nn.Module, seed: int) -> None:
    g = torch.Generator().manual_seed(seed)
    for p in model.parameters():
        p.grad = torch.randn(p.shape, generator=g)


def quintic(x: torch.Tensor, steps: int) -> torch.Tensor:
    """Jordan's iteration as published, one matrix at a time, transposed when tall."""
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    x = x / x.norm()
    for _ in range(steps):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.T if tall else x


@pytest.mark.parametrize("shape", [(7, 7), (5, 13), (13, 5), (3, 31)])
@pytest.mark.parametrize("steps", [0, 1, 5])
def test_orthogonalise_is_the_published_iteration(shape, steps):
    g = torch.Generator().manual_seed(1)
    stack = torch.randn(3, *shape, generator=g, dtype=torch.float64)
    expected = torch.stack([quintic(x, steps) for x in stack])
    torch.testing.assert_close(orthogonalise(stack, steps), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(32, 32), (16, 48), (48, 16)])
def test_orthogonalise_keeps_the_singular_vectors_and_evens_out_the_values(shape):
    g = torch.Generator().manual_seed(2)
    matrix = torch.randn(1, *shape, generator=g)
    u, sigma, vh = torch.linalg.svd(matrix[0], full_matrices=False)
    inside = u.T @ orthogonalise(matrix)[0] @ vh.T
    values = inside.diagonal()
    torch.testing.assert_close(inside, torch.diag(values), atol=1e-4, rtol=0)
    clear = values[sigma > 0.02 * sigma.norm()]
    assert clear.min() > 0.6
    assert clear.max() < 1.3


def test_orthogonalise_gives_zeros_for_zeros():
    assert not orthogonalise(torch.zeros(2, 3, 5)).any()


def test_parameters_are_split_by_what_they_map():
    model = small_model()
    matrices, tables, vectors = split_parameters(model)
    assert len(matrices) + len(tables) + len(vectors) == len(list(model.parameters()))
    assert [id(p) for p in tables] == [id(model.output.weight)]
    assert all(p.ndim == 1 for p in vectors)
    assert all(13 not in p.shape for p in matrices)
    untied = build_model(TransformerConfig(tie_embeddings=False), 13)
    assert len(split_parameters(untied)[1]) == 3
    rnn = build_model(RNNConfig(d_embedding=6, d_hidden=5, d_attention=7, d_maxout=6), 13)
    assert [id(p) for p in split_parameters(rnn)[1]] == [id(rnn.output.weight)]


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_muon_is_a_loop_over_single_matrices(decay):
    model = small_model()
    reference = {name: p.detach().clone() for name, p in model.named_parameters()}
    config = OptimizerConfig(muon_learning_rate=0.03, muon_weight_decay=decay, momentum=0.9)
    optimizer = build_optimizer(model, config)
    chosen = {id(p) for p in split_parameters(model)[0]}
    names = [n for n, p in model.named_parameters() if id(p) in chosen]
    buffers = {n: torch.zeros_like(reference[n]) for n in names}
    for seed in range(3):
        set_gradients(model, seed)
        for n in names:
            gradient = model.get_parameter(n).grad
            buffers[n] = 0.9 * buffers[n] + 0.1 * gradient
            direction = quintic(0.1 * gradient + 0.9 * buffers[n], 5)
            rows, columns = gradient.shape
            reference[n] *= 1 - 0.03 * decay
            reference[n] -= 0.03 * max(1.0, rows / columns) ** 0.5 * direction
        optimizer.step()
    for n in names:
        torch.testing.assert_close(model.get_parameter(n).data, reference[n], atol=1e-4, rtol=1e-4)


def test_what_muon_leaves_alone_moves_exactly_as_with_torchs_adamw():
    model, twin = small_model(), small_model()
    config = OptimizerConfig(weight_decay=0.01)
    optimizer = build_optimizer(model, config)
    _, tables, vectors = split_parameters(twin)
    groups = [{"params": tables, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, lr=4e-3, betas=(0.9, 0.98), eps=1e-9, fused=True)
    for seed in range(4):
        set_gradients(model, seed)
        set_gradients(twin, seed)
        optimizer.step()
        adamw.step()
    for part in (1, 2):
        pairs = zip(split_parameters(model)[part], split_parameters(twin)[part], strict=True)
        for mine, theirs in pairs:
            assert torch.equal(mine, theirs)


@pytest.mark.parametrize("name", ["muon", "adamw", "adam"])
def test_a_saved_optimiser_goes_on_exactly(name):
    model = small_model()
    optimizer = build_optimizer(model, OptimizerConfig(name=name))
    set_gradients(model, 0)
    optimizer.step()
    twin = copy.deepcopy(model)
    buffer = io.BytesIO()
    torch.save(optimizer.state_dict(), buffer)
    buffer.seek(0)
    restored = build_optimizer(twin, OptimizerConfig(name=name, learning_rate=1.0))
    restored.load_state_dict(torch.load(buffer, weights_only=True))
    for seed in (1, 2):
        for m, o in ((model, optimizer), (twin, restored)):
            set_gradients(m, seed)
            o.step()
    for mine, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_a_scheduler_sets_both_rates():
    model = small_model()
    optimizer = build_optimizer(model, OptimizerConfig(learning_rate=0.5, muon_learning_rate=0.25))
    assert isinstance(optimizer, Muon)
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda update: 0.5)
    assert [g["lr"] for g in optimizer.param_groups] == [0.125, 0.25, 0.25]
    assert [g["lr"] for g in optimizer.rest.param_groups] == [0.25, 0.25]


def test_parameters_without_gradient_stay():
    model = small_model()
    before = copy.deepcopy(model.state_dict())
    build_optimizer(model, OptimizerConfig()).step()
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())


@pytest.mark.parametrize(
    ("setting", "value"),
    [("name", "sgd"), ("learning_rate", 0.0), ("beta2", 1.0), ("momentum", -0.1)],
)
def test_settings_out_of_range_are_refused(setting, value):
    with pytest.raises(ConfigError, match=f"optimizer.{setting}"):
        OptimizerConfig(**{setting: value})
