import math

import pytest
import torch
from torch import Tensor, nn

from kakehashi.layers.feedforward import FeedForward

B, N, D, D_FF = 3, 5, 11, 17


def make_feedforward(activation: str, bias: bool, dropout: float = 0.0) -> FeedForward:
    layer = FeedForward(D, D_FF, activation, bias, dropout).double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    return layer


def linear(layer: nn.Module, x: Tensor, bias: bool) -> Tensor:
    parameters = dict(layer.named_parameters())
    y = torch.einsum("bnd,ed->bne", x, parameters["weight"])
    return y + parameters["bias"] if bias else y


def relu(x: Tensor) -> Tensor:
    return x * (x > 0)


def gelu(x: Tensor) -> Tensor:
    return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))


def silu(x: Tensor) -> Tensor:
    return x / (1 + torch.exp(-x))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu", "swiglu"])
def test_feedforward_against_the_formula(activation: str, bias: bool) -> None:
    layer = make_feedforward(activation, bias)
    x = torch.randn(B, N, D, dtype=torch.float64)
    hidden = linear(layer.inner, x, bias)
    if activation == "swiglu":
        assert layer.gate is not None
        hidden = silu(hidden) * linear(layer.gate, x, bias)
    else:
        assert layer.gate is None
        hidden = {"relu": relu, "gelu": gelu}[activation](hidden)
    torch.testing.assert_close(layer(x), linear(layer.outer, hidden, bias), rtol=0, atol=1e-12)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("activation", "matrices"), [("relu", 2), ("gelu", 2), ("swiglu", 3)])
def test_number_of_parameters(activation: str, matrices: int, bias: bool) -> None:
    layer = make_feedforward(activation, bias)
    biases = (D + (matrices - 1) * D_FF) if bias else 0
    assert sum(p.numel() for p in layer.parameters()) == matrices * D * D_FF + biases


@pytest.mark.parametrize("activation", ["relu", "gelu", "swiglu"])
def test_dropout_falls_on_hidden_units(activation: str) -> None:
    """With all weights 1 and one input, each output counts the hidden units that were kept."""
    layer = FeedForward(1, 997, activation, bias=False, dropout=0.5).double()
    for parameter in layer.parameters():
        nn.init.ones_(parameter)
    x = torch.ones(1, 1, 1, dtype=torch.float64)
    dropped = layer(x).item()
    whole = layer.eval()(x).item()
    kept = dropped / (2 * whole / 997)
    assert kept == pytest.approx(round(kept), abs=1e-6)
    assert 0.4 * 997 < kept < 0.6 * 997


def test_a_typing_error_is_no_silent_default() -> None:
    with pytest.raises(ValueError, match="unknown activation 'reul': relu, gelu or swiglu"):
        FeedForward(D, D_FF, "reul", bias=False, dropout=0.0)
