"""The chunked loss against the plain formula, torch's own loss, and finite differences."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from kakehashi.errors import ConfigError
from kakehashi.training.config import ObjectiveConfig
from kakehashi.training.objective import cross_entropy

T, D, V = 13, 5, 11


def example(dtype: torch.dtype = torch.float64, seed: int = 0):
    g = torch.Generator().manual_seed(seed)
    features = torch.randn(T, D, generator=g, dtype=dtype, requires_grad=True)
    weight = torch.randn(V, D, generator=g, dtype=dtype, requires_grad=True)
    bias = torch.randn(V, generator=g, dtype=dtype, requires_grad=True)
    targets = torch.randint(0, V, (T,), generator=g)
    return features, weight, bias, targets


def plain(features, weight, bias, targets, eps):
    """The definition, with every log probability written out."""
    logits = features @ weight.T + (0 if bias is None else bias)
    log_p = logits - logits.exp().sum(1, keepdim=True).log()
    chosen = log_p[torch.arange(len(targets)), targets]
    return (-(1 - eps) * chosen - eps * log_p.mean(1)).sum() / len(targets), -chosen.mean()


@pytest.mark.parametrize("chunk", [1, 4, 7, 13, 256])
@pytest.mark.parametrize("eps", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("with_bias", [False, True])
def test_equals_the_plain_formula_and_its_gradient(chunk, eps, with_bias):
    features, weight, bias, targets = example()
    inputs = [features, weight] + ([bias] if with_bias else [])
    used = bias if with_bias else None
    expected, expected_nll = plain(features, weight, used, targets, eps)
    loss = cross_entropy(features, weight, used, targets, eps, chunk)
    torch.testing.assert_close(loss.smoothed, expected)
    torch.testing.assert_close(loss.nll, expected_nll)
    # an upstream factor other than one must reach every gradient
    wanted = torch.autograd.grad(3 * expected, inputs)
    found = torch.autograd.grad(3 * loss.smoothed, inputs)
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b)


@settings(max_examples=25, deadline=None)
@given(eps=st.floats(0, 0.99), chunk=st.integers(1, 20), seed=st.integers(0, 1000))
def test_equals_torch(eps, chunk, seed):
    features, weight, bias, targets = example(seed=seed)
    expected = F.cross_entropy(features @ weight.T + bias, targets, label_smoothing=eps)
    loss = cross_entropy(features, weight, bias, targets, eps, chunk)
    torch.testing.assert_close(loss.smoothed, expected)


def test_gradcheck():
    features, weight, bias, targets = example()
    assert torch.autograd.gradcheck(
        lambda f, w, b: cross_entropy(f, w, b, targets, 0.1, 4).smoothed, (features, weight, bias)
    )


def test_an_impossible_token_has_a_finite_loss():
    """p(y) underflows in float32, -log p(y) does not."""
    features = torch.tensor([[1000.0]])
    weight = torch.tensor([[1.0], [-1.0], [0.0]], requires_grad=True)
    loss = cross_entropy(features, weight, None, torch.tensor([1]))
    assert loss.nll.item() == pytest.approx(2000)
    loss.smoothed.backward()
    torch.testing.assert_close(weight.grad, torch.tensor([[1000.0], [-1000.0], [0.0]]))


def test_works_without_gradients():
    features, weight, bias, targets = example()
    expected, _ = plain(features, weight, bias, targets, 0.1)
    with torch.no_grad():
        loss = cross_entropy(features, weight, bias, targets, 0.1, 4)
    torch.testing.assert_close(loss.smoothed, expected.detach())
    assert not loss.smoothed.requires_grad


def test_nll_carries_no_gradient():
    features, weight, bias, targets = example()
    assert not cross_entropy(features, weight, bias, targets, 0.1, 4).nll.requires_grad


@pytest.mark.parametrize("low", [torch.bfloat16, torch.float16])
def test_under_autocast_it_is_close_and_accumulates_in_float32(low):
    features, weight, bias, targets = example(torch.float32)
    expected, _ = plain(features, weight, bias, targets, 0.1)
    wanted = torch.autograd.grad(expected, [features, weight, bias])
    with torch.autocast("cpu", dtype=low):
        loss = cross_entropy(features.to(low), weight, bias, targets, 0.1, 4)
    assert loss.smoothed.dtype == torch.float32
    assert loss.smoothed.item() == pytest.approx(expected.item(), abs=2e-2)
    found = torch.autograd.grad(loss.smoothed, [features, weight, bias])
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == torch.float32
        torch.testing.assert_close(a, b, atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize(("setting", "value"), [("label_smoothing", 1.0), ("chunk", 0)])
def test_settings_out_of_range_are_refused(setting, value):
    with pytest.raises(ConfigError, match=f"objective.{setting}"):
        ObjectiveConfig(**{setting: value})
