"""The one function that all attention goes through: its two paths, its masks, its empty rows."""

from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from kakehashi.attention import attend, attention_weights, make_score
from kakehashi.attention.masks import summand

SCORES = ("dot", "scaled_dot", "general", "additive")
FUSED = ("dot", "scaled_dot")
B, H, N, M, D_K, D_V = 2, 3, 5, 7, 11, 13
LONG_N, LONG_M = 23, 29
"""Long enough for the fused kernel in training too."""


def draw(
    dtype: torch.dtype = torch.float64, d_v: int = D_V, n: int = N, m: int = M
) -> tuple[Tensor, Tensor, Tensor]:
    shapes = (B, H, n, D_K), (B, H, m, D_K), (B, H, m, d_v)
    q, k, v = (torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes)
    return q, k, v


def draw_mask(*shape: int) -> Tensor:
    """About half of the keys allowed, at least one for every query."""
    mask = torch.rand(shape) < 0.5
    mask[..., 2] = True
    return mask


def mask_shapes(n: int, m: int) -> list[tuple[int, ...]]:
    return [(B, H, n, m), (B, 1, n, m), (1, H, n, m), (B, 1, 1, m), (1, 1, n, m), (1, 1, 1, m)]


MASK_SHAPES = mask_shapes(N, M)


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("mask_shape", [None, *MASK_SHAPES])
def test_weights_are_a_distribution_over_the_allowed_keys(
    name: str, mask_shape: tuple[int, ...] | None
) -> None:
    q, k, _ = draw()
    mask = None if mask_shape is None else draw_mask(*mask_shape)
    weights = attention_weights(make_score(name, H, D_K).double(), q, k, mask)
    assert weights.shape == (B, H, N, M)
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, N).double(), rtol=0, atol=1e-14)
    if mask is None:
        assert (weights > 0).all()
    else:
        assert torch.equal(weights > 0, mask.expand(B, H, N, M))


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("mask_shape", MASK_SHAPES)
def test_a_masked_key_is_a_key_that_is_not_there(name: str, mask_shape: tuple[int, ...]) -> None:
    score = make_score(name, H, D_K).double()
    q, k, v = draw()
    mask = draw_mask(*mask_shape).expand(B, H, N, M)
    context, _ = attend(score, q, k, v, mask)
    for b in range(B):
        for n in range(N):
            for h in range(H):
                there = mask[b, h, n]
                # All heads are given, since some scores have parameters by head; head h is read.
                query, keys, values = q[b, :, n : n + 1], k[b, :, there], v[b, :, there]
                alone, _ = attend(score, query[None], keys[None], values[None])
                torch.testing.assert_close(context[b, h, n], alone[0, h, 0], rtol=0, atol=1e-12)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Grows by one each time that the fused kernel runs."""
    calls: list[None] = []
    fused = F.scaled_dot_product_attention

    def counted(*args: Any, **kwargs: Any) -> Tensor:
        calls.append(None)
        return fused(*args, **kwargs)

    monkeypatch.setattr(F, "scaled_dot_product_attention", counted)
    return calls


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize("mask_shape", [None, *mask_shapes(LONG_N, LONG_M)])
@pytest.mark.parametrize("d_v", [D_K, D_V])
def test_the_fused_path_equals_the_explicit_one_with_its_gradients(
    name: str,
    dtype: torch.dtype,
    close: float,
    mask_shape: tuple[int, ...] | None,
    d_v: int,
    kernel: list[None],
) -> None:
    score = make_score(name, H, D_K)
    q, k, v = draw(dtype, d_v, LONG_N, LONG_M)
    mask = None if mask_shape is None else draw_mask(*mask_shape)
    fused, none = attend(score, q, k, v, mask)
    assert len(kernel) == 1
    explicit, weights = attend(score, q, k, v, mask, return_weights=True)
    assert len(kernel) == 1
    assert none is None
    assert weights is not None
    torch.testing.assert_close(fused, explicit, rtol=0, atol=close)
    direction = torch.randn_like(fused)
    for one, other in zip(
        torch.autograd.grad(fused, (q, k, v), direction),
        torch.autograd.grad(explicit, (q, k, v), direction),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=0, atol=10 * close)


@pytest.mark.parametrize("name", SCORES)
def test_the_fused_kernel_runs_where_it_can_and_helps(name: str, kernel: list[None]) -> None:
    score = make_score(name, H, D_K).double()
    applies = name in FUSED
    with torch.no_grad():
        attend(score, *draw())
        assert len(kernel) == applies
        attend(score, *draw(n=LONG_N, m=LONG_M))
        assert len(kernel) == 2 * applies
        attend(score, *draw(), return_weights=True)
        attend(score, *draw(), dropout=0.5)
    attend(score, *draw())  # short rows to learn from: the plain products are faster
    assert len(kernel) == 2 * applies
    attend(score, *draw(n=LONG_N, m=LONG_M))
    assert len(kernel) == 3 * applies


@pytest.mark.parametrize(("name", "scale"), [("dot", 1.0), ("scaled_dot", None)])
@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize("return_weights", [False, True])
@pytest.mark.parametrize("learning", [False, True])
def test_dot_products_equal_torchs_kernel(
    name: str,
    scale: float | None,
    dtype: torch.dtype,
    close: float,
    return_weights: bool,
    learning: bool,
) -> None:
    q, k, v = draw(dtype)
    mask = draw_mask(B, 1, N, M)
    with torch.set_grad_enabled(learning):
        context, _ = attend(make_score(name, H, D_K), q, k, v, mask, return_weights=return_weights)
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    torch.testing.assert_close(context, expected, rtol=0, atol=close)


@pytest.mark.parametrize("name", SCORES)
@torch.no_grad()
def test_asking_for_the_weights_changes_nothing_and_they_are_the_ones_used(name: str) -> None:
    score = make_score(name, H, D_K).double()
    q, k, v = draw()
    mask = draw_mask(B, 1, N, M)
    plain, _ = attend(score, q, k, v, mask)
    context, weights = attend(score, q, k, v, mask, return_weights=True)
    assert weights is not None
    torch.testing.assert_close(context, plain, rtol=0, atol=1e-12)
    torch.testing.assert_close(weights @ v, plain, rtol=0, atol=1e-12)


def empty_row_masks(n: int, m: int) -> list[Tensor]:
    some = draw_mask(B, H, n, m)
    some[0, 1, 3] = False
    some[1, 2] = False
    whole_sentence = torch.tensor([[True] * m, [False] * m])[:, None, None, :]
    nothing = torch.zeros(1, 1, 1, m, dtype=torch.bool)
    return [some, whole_sentence, nothing]


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("d_v", [D_K, D_V])
@pytest.mark.parametrize("return_weights", [False, True])
@pytest.mark.parametrize(("n", "m"), [(N, M), (LONG_N, LONG_M)])
def test_a_query_with_nothing_to_attend_to_gets_zeros_and_gives_no_gradient(
    name: str, dtype: torch.dtype, d_v: int, return_weights: bool, n: int, m: int
) -> None:
    score = make_score(name, H, D_K).to(dtype)
    for mask in empty_row_masks(n, m):
        q, k, v = draw(dtype, d_v, n, m)
        context, weights = attend(score, q, k, v, mask, return_weights=return_weights)
        empty = ~mask.expand(B, H, n, m).any(-1)
        assert context.isfinite().all()
        assert not context[empty].any()
        assert context[~empty].abs().gt(0).all()
        if weights is not None:
            assert not weights[empty].any()
        with torch.no_grad():
            again, _ = attend(score, q, k, v, mask)
        assert not again[empty].any()
        torch.testing.assert_close(again, context.detach(), rtol=0, atol=1e-5)
        context.sum().backward()
        assert q.grad is not None
        assert k.grad is not None
        assert v.grad is not None
        assert all(g.isfinite().all() for g in (q.grad, k.grad, v.grad))
        assert not q.grad[empty].any()
        unread = ~mask.expand(B, H, n, m).any(-2)
        assert not k.grad[unread].any()
        assert not v.grad[unread].any()
        for parameter in score.parameters():
            assert parameter.grad is not None
            assert parameter.grad.isfinite().all()


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize(("n", "m"), [(N, M), (LONG_N, LONG_M)])
def test_no_gradient_reaches_a_masked_key_or_value(name: str, n: int, m: int) -> None:
    q, k, v = draw(n=n, m=m)
    mask = draw_mask(B, 1, 1, m)
    attend(make_score(name, H, D_K).double(), q, k, v, mask)[0].square().sum().backward()
    assert k.grad is not None
    assert v.grad is not None
    masked = ~mask.expand(B, H, 1, m)[:, :, 0]
    assert not k.grad[masked].any()
    assert not v.grad[masked].any()
    assert v.grad[~masked].any(-1).all()


@pytest.mark.parametrize("name", SCORES)
@settings(max_examples=20)
@given(order=st.permutations(range(M)), seed=st.integers(0, 2**32 - 1), masked=st.booleans())
def test_the_order_of_keys_does_not_matter(
    name: str, order: list[int], seed: int, masked: bool
) -> None:
    torch.manual_seed(seed)
    score = make_score(name, H, D_K).double()
    q, k, v = draw()
    mask = draw_mask(B, 1, N, M) if masked else None
    moved = None if mask is None else mask[..., order]
    context, weights = attend(score, q, k, v, mask, return_weights=True)
    again, moved_weights = attend(
        score, q, k[:, :, order], v[:, :, order], moved, return_weights=True
    )
    assert weights is not None
    assert moved_weights is not None
    torch.testing.assert_close(again, context, rtol=0, atol=1e-12)
    torch.testing.assert_close(moved_weights, weights[..., order], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", SCORES)
@settings(max_examples=20)
@given(order=st.permutations(range(N)), seed=st.integers(0, 2**32 - 1))
def test_queries_do_not_see_each_other(name: str, order: list[int], seed: int) -> None:
    torch.manual_seed(seed)
    score = make_score(name, H, D_K).double()
    q, k, v = draw()
    mask = draw_mask(B, 1, N, M)
    context, _ = attend(score, q, k, v, mask)
    again, _ = attend(score, q[:, :, order], k, v, mask[:, :, order])
    torch.testing.assert_close(again, context[:, :, order], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("size", [1e3, 1e18])
def test_extreme_scores_stay_finite(name: str, size: float) -> None:
    q, k, v = draw(torch.float32)
    mask = draw_mask(B, 1, N, M)
    for return_weights in (False, True):
        context, _ = attend(
            make_score(name, H, D_K), q * size, k * size, v, mask, return_weights=return_weights
        )
        assert context.isfinite().all()


@pytest.mark.parametrize("name", SCORES)
def test_attention_dropout_falls_on_the_weights(name: str) -> None:
    """With the identity for values the context is the dropped weights themselves."""
    p, keys = 0.25, 41
    score = make_score(name, H, D_K).double()
    q, k = torch.randn(B, H, 37, D_K).double(), torch.randn(B, H, keys, D_K).double()
    v = torch.eye(keys).double().expand(B, H, keys, keys)
    dropped, weights = attend(score, q, k, v, dropout=p, return_weights=True)
    assert weights is not None
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, 37).double())
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], (weights / (1 - p))[kept], rtol=1e-12, atol=0)
    n = kept.numel()
    deviation = (n * p * (1 - p)) ** 0.5
    assert abs(kept.sum().item() - n * (1 - p)) < 5 * deviation
    again, none = attend(score, q, k, v, dropout=p)
    assert none is None
    assert not torch.equal(again, dropped)


@pytest.mark.parametrize("name", SCORES)
def test_derivatives_are_those_of_finite_differences(name: str) -> None:
    score = make_score(name, 2, 3).double()
    shapes = (1, 2, 2, 3), (1, 2, 5, 3), (1, 2, 5, 2)
    q, k, v = (torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes)
    mask = torch.rand(1, 1, 2, 5) < 0.6
    mask[..., 0, :] = False
    for return_weights in (False, True):
        context = partial(attend, score, allowed=mask, return_weights=return_weights)
        assert torch.autograd.gradcheck(lambda q, k, v, f=context: f(q, k, v)[0], (q, k, v))


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("n", "m"), [(1, 2), (N, M), (LONG_N, LONG_M)])
def test_a_mask_that_is_added_says_what_one_of_truth_values_says(
    name: str, dtype: torch.dtype, n: int, m: int
) -> None:
    """With the fused kernel, without it, and where products are tiny; with weights and without."""
    score = make_score(name, H, D_K).to(dtype)
    for shape in [s for s in mask_shapes(n, m) if s[-1] > 2]:
        q, k, v = (tensor.detach() for tensor in draw(dtype, n=n, m=m))
        mask = draw_mask(*shape)
        added = summand(mask, dtype)
        assert torch.equal(added == 0, mask)
        expected, weights = attend(score, q, k, v, mask, return_weights=True)
        close = {"rtol": 0.0, "atol": 1e-12 if dtype == torch.float64 else 1e-5}
        for return_weights in (False, True):
            context, found = attend(score, q, k, v, added, return_weights=return_weights)
            torch.testing.assert_close(context, expected, **close)
        assert found is not None
        assert weights is not None
        torch.testing.assert_close(found, weights, **close)
        assert torch.equal(found == 0, ~mask.expand_as(found))


@pytest.mark.parametrize("name", FUSED)
def test_a_search_goes_without_the_kernel_where_it_is_short(name: str, kernel: list[None]) -> None:
    score = make_score(name, H, D_K).double()
    mask = draw_mask(B, 1, 1, LONG_M)

    def calls(n: int, m: int, allowed: Tensor | None = None) -> int:
        kernel.clear()
        attend(score, *draw(n=n, m=m), allowed)
        return len(kernel)

    with torch.no_grad():
        assert calls(3, LONG_M) == 0
        assert calls(3, LONG_M, summand(mask, torch.float64)) == 0
        assert calls(3, LONG_M, mask) == 1  # to apply it takes longer than is won
        assert calls(1, 7) == 1  # products too small to be fast
        assert calls(LONG_N, LONG_M) == 1
