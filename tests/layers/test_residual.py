import math

import pytest
import torch
from torch import Tensor, nn

from kakehashi.layers.residual import EPSILON, Residual, make_norm

B, N, D = 3, 5, 11


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def randomised(norm: nn.Module) -> nn.Module:
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    return norm.double()


@pytest.mark.parametrize("bias", [False, True])
def test_layer_norm_against_the_formula(bias: bool) -> None:
    norm = randomised(make_norm("layer", D, bias))
    assert [name for name, _ in norm.named_parameters()] == ["weight", "bias"][: 1 + bias]
    x = normal(B, N, D)
    mean = x.sum(-1, keepdim=True) / D
    variance = ((x - mean) ** 2).sum(-1, keepdim=True) / D
    parameters = dict(norm.named_parameters())
    expected = (x - mean) / (variance + 1e-6).sqrt() * parameters["weight"]
    if bias:
        expected = expected + parameters["bias"]
    torch.testing.assert_close(norm(x), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("bias", [False, True])
def test_rms_norm_against_the_formula(bias: bool) -> None:
    norm = randomised(make_norm("rms", D, bias))
    assert [name for name, _ in norm.named_parameters()] == ["weight"]
    x = normal(B, N, D)
    expected = x / ((x**2).sum(-1, keepdim=True) / D + 1e-6).sqrt()
    expected = expected * dict(norm.named_parameters())["weight"]
    torch.testing.assert_close(norm(x), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_norms_of_a_zero_vector_are_finite(kind: str) -> None:
    norm = make_norm(kind, D, bias=False)
    x = torch.zeros(1, D, requires_grad=True)
    norm(x).sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert math.isclose(EPSILON, 1e-6)


def test_pre_norm_adds_to_the_stream_as_it_is() -> None:
    norm = randomised(make_norm("layer", D, bias=True))
    residual = Residual(norm, "pre", 0.0)
    x, w = normal(B, N, D), normal(D, D)
    y = residual.before(x) @ w
    torch.testing.assert_close(residual.after(x, y), x + norm(x) @ w, rtol=0, atol=1e-12)


def test_post_norm_normalises_the_sum() -> None:
    norm = randomised(make_norm("layer", D, bias=True))
    residual = Residual(norm, "post", 0.0)
    x, w = normal(B, N, D), normal(D, D)
    assert residual.before(x) is x
    y = residual.before(x) @ w
    torch.testing.assert_close(residual.after(x, y), norm(x + x @ w), rtol=0, atol=1e-12)


@pytest.mark.parametrize("position", ["pre", "post"])
def test_dropout_falls_on_what_is_added_and_nowhere_else(position: str) -> None:
    residual = Residual(nn.Identity(), position, 0.5)
    x, y = normal(B, 101, D), normal(B, 101, D)
    added = residual.after(x, y) - x
    kept = added.abs() > 1e-12
    assert 0.4 < kept.double().mean().item() < 0.6
    torch.testing.assert_close(added, 2 * y * kept, rtol=0, atol=1e-12)
    torch.testing.assert_close(residual.eval().after(x, y), x + y, rtol=0, atol=0)


def test_a_typing_error_is_no_silent_default() -> None:
    with pytest.raises(ValueError, match="unknown norm 'batch': layer or rms"):
        make_norm("batch", D, bias=False)
    with pytest.raises(ValueError, match="'Pre': pre or post"):
        Residual(nn.Identity(), "Pre", 0.0)


@pytest.mark.parametrize("narrow", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("position", ["pre", "post"])
def test_the_stream_stays_as_wide_as_it_is(narrow: torch.dtype, position: str) -> None:
    """Under autocast sublayers answer in half precision; 66,000 is more than float16 holds."""
    residual = Residual(make_norm("layer", D, bias=True), position, 0.0).eval()
    x, y = torch.full((B, N, D), 65_000.0), torch.linspace(900, 1_100, D).expand(B, N, D)
    with torch.enable_grad():
        learnt = residual.after(x, y.to(narrow))
    with torch.no_grad():
        searched = residual.after(x, y.to(narrow).contiguous())
    assert learnt.dtype == searched.dtype == torch.float32
    assert torch.equal(learnt, searched)
