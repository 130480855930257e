"""Attention(Q, K, V) = V Softmax(f(Q, K)), written as the literature does: vectors are columns.

Loops over columns and nothing else: Q is d_k x n, K is d_k x m, V is d_v x m, and the Softmax is
taken down each column of the m x n matrix f(Q, K). Everything in float64.
"""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kakehashi.attention import Attention, General, attend, make_score

SCORES = ("dot", "scaled_dot", "general", "additive")
B, H, N, M, D_K, D_V = 2, 3, 5, 7, 11, 13
D_X, D_Y, D_O = 17, 19, 23


Column = list[float]


def column(matrix: Tensor, j: int) -> Column:
    values: Column = matrix[:, j].tolist()
    return values


def f(name: str, q: Column, k: Column, w: Tensor | None) -> float:
    """How well the column q fits the column k."""
    rows = range(len(k))
    if name == "dot":
        return sum(k[r] * q[r] for r in rows)
    if name == "scaled_dot":
        return sum(k[r] * q[r] for r in rows) / math.sqrt(len(q))
    assert w is not None
    parameter: Any = w.tolist()
    if name == "general":
        total = sum(k[r] * parameter[r][c] * q[c] for r in rows for c in range(len(q)))
    else:
        total = sum(parameter[r] * math.tanh(q[r] + k[r]) for r in rows)
    return float(total)


def equation(name: str, q: Tensor, k: Tensor, v: Tensor, w: Tensor | None) -> tuple[Tensor, Tensor]:
    """V Softmax(f(Q, K)), which is d_v x n, and that Softmax, m x n."""
    (m, n), d_v = (k.shape[1], q.shape[1]), v.shape[0]
    softmax, result = torch.zeros(m, n).double(), torch.zeros(d_v, n).double()
    for j in range(n):
        exponentials = [math.exp(f(name, column(q, j), column(k, i), w)) for i in range(m)]
        for i in range(m):
            softmax[i, j] = exponentials[i] / sum(exponentials)
            result[:, j] += softmax[i, j] * v[:, i]
    return result, softmax


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def parameter_of_head(score: nn.Module, head: int) -> Tensor | None:
    """W (d_k x d_k) of the general score, w (d_k) of the additive one, for one head."""
    for parameter in score.parameters():
        return parameter.detach()[head]
    return None


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("return_weights", [False, True])
def test_attend_is_equation_1(name: str, return_weights: bool) -> None:
    score = make_score(name, H, D_K).double()
    q, k, v = normal(B, H, N, D_K), normal(B, H, M, D_K), normal(B, H, M, D_V)
    with torch.no_grad():
        context, weights = attend(score, q, k, v, return_weights=return_weights)
    assert context.shape == (B, H, N, D_V)
    for b in range(B):
        for h in range(H):
            result, softmax = equation(
                name, q[b, h].T, k[b, h].T, v[b, h].T, parameter_of_head(score, h)
            )
            torch.testing.assert_close(context[b, h].T, result, rtol=0, atol=1e-12)
            if return_weights:
                assert weights is not None
                torch.testing.assert_close(weights[b, h].T, softmax, rtol=0, atol=1e-12)


def attention_in_columns(layer: Attention, name: str, bias: bool, x: Tensor, y: Tensor) -> Tensor:
    """W^O [V_1 Softmax(f(Q_1, K_1)); ...; V_H ...] for X d_x x n and Y d_y x m, d_o x n."""
    assert layer.value is not None
    assert layer.output is not None

    def project(linear: nn.Linear, columns: Tensor) -> Tensor:
        projected = linear.weight.detach() @ columns
        return projected + linear.bias.detach()[:, None] if bias else projected

    heads = []
    for h in range(H):
        rows_k, rows_v = slice(h * D_K, (h + 1) * D_K), slice(h * D_V, (h + 1) * D_V)
        q = project(layer.query, x)[rows_k]
        k = project(layer.key, y)[rows_k]
        v = project(layer.value, y)[rows_v]
        heads.append(equation(name, q, k, v, parameter_of_head(layer.score, h))[0])
    return project(layer.output, torch.cat(heads))


def make_attention(d_query: int, d_memory: int, name: str, bias: bool) -> Attention:
    return Attention(
        d_query, d_memory, n_heads=H, d_k=D_K, d_v=D_V, d_out=D_O, score=name, bias=bias
    ).double()


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("bias", [False, True])
def test_cross_attention_is_equation_1_with_projections(name: str, bias: bool) -> None:
    layer = make_attention(D_X, D_Y, name, bias)
    x, y = normal(B, N, D_X), normal(B, M, D_Y)
    with torch.no_grad():  # the dot products: on the fused kernel
        result, _ = layer(x, layer.memory(y))
    learning, _ = layer(x, layer.memory(y))
    torch.testing.assert_close(learning.detach(), result, rtol=0, atol=1e-12)
    for b in range(B):
        expected = attention_in_columns(layer, name, bias, x[b].T, y[b].T)
        torch.testing.assert_close(result[b].T, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("bias", [False, True])
def test_self_attention_is_equation_1_with_y_equal_to_x(name: str, bias: bool) -> None:
    layer = make_attention(D_X, D_X, name, bias)
    x = normal(B, N, D_X)
    with torch.no_grad():
        result, _ = layer.self_forward(x, None)
    learning, _ = layer.self_forward(x, None)
    torch.testing.assert_close(learning.detach(), result, rtol=0, atol=1e-12)
    for b in range(B):
        expected = attention_in_columns(layer, name, bias, x[b].T, x[b].T)
        torch.testing.assert_close(result[b].T, expected, rtol=0, atol=1e-12)


def test_general_score_compares_queries_and_keys_of_different_widths() -> None:
    d_q = 5
    score = General(H, d_q, D_K).double()
    q, k, v = normal(B, H, N, d_q), normal(B, H, M, D_K), normal(B, H, M, D_V)
    context, _ = attend(score, q, k, v)
    for b in range(B):
        for h in range(H):
            w = parameter_of_head(score, h)
            result, _ = equation("general", q[b, h].T, k[b, h].T, v[b, h].T, w)
            torch.testing.assert_close(context[b, h].T, result, rtol=0, atol=1e-12)
