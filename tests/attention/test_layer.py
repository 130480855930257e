"""Attention with projections, against ``torch.nn.MultiheadAttention`` and against itself."""

import pytest
import torch
from jaxtyping import TypeCheckError
from torch import Tensor, nn

from kakehashi.attention import Attention, Past, attend, causal_mask, padding_mask

SCORES = ("dot", "scaled_dot", "general", "additive")
B, H, N, M, D_K, D_V = 2, 3, 5, 7, 11, 13
D_X, D_Y, D_O = 17, 19, 23
ALLOWED = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])


def make_attention(
    score: str = "scaled_dot", d_memory: int = D_Y, bias: bool = True, dropout: float = 0.0
) -> Attention:
    layer = Attention(
        D_X,
        d_memory,
        n_heads=H,
        d_k=D_K,
        d_v=D_V,
        d_out=D_O,
        score=score,
        bias=bias,
        dropout=dropout,
    ).double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.3)
    return layer


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def torchs_attention(
    layer: Attention, d_model: int, k_dim: int, v_dim: int, bias: bool
) -> nn.MultiheadAttention:
    """torch's module with the weights of ours."""
    torchs = nn.MultiheadAttention(
        d_model, H, bias=bias, kdim=k_dim, vdim=v_dim, batch_first=True, dtype=torch.float64
    )
    assert layer.value is not None
    assert layer.output is not None
    linears = [layer.query, layer.key, layer.value]
    with torch.no_grad():
        if k_dim == v_dim == d_model:
            torchs.in_proj_weight.copy_(torch.cat([linear.weight for linear in linears]))
        else:
            torchs.q_proj_weight.copy_(layer.query.weight)
            torchs.k_proj_weight.copy_(layer.key.weight)
            torchs.v_proj_weight.copy_(layer.value.weight)
        torchs.out_proj.weight.copy_(layer.output.weight)
        if bias:
            torchs.in_proj_bias.copy_(torch.cat([linear.bias for linear in linears]))
            torchs.out_proj.bias.copy_(layer.output.bias)
    return torchs


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("d_memory", [3 * 11, D_Y])
@pytest.mark.parametrize("masked", [False, True])
def test_cross_attention_is_multi_head_attention(bias: bool, d_memory: int, masked: bool) -> None:
    d_model = 3 * 11
    layer = Attention(
        d_model, d_memory, n_heads=H, d_k=11, d_v=11, d_out=d_model, bias=bias
    ).double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.3)
    torchs = torchs_attention(layer, d_model, d_memory, d_memory, bias)
    x, y = normal(B, N, d_model), normal(B, M, d_memory)
    mask = padding_mask(ALLOWED) if masked else None
    result, weights = layer(x, layer.memory(y, mask), return_weights=True)
    expected, expected_weights = torchs(
        x, y, y, key_padding_mask=~ALLOWED if masked else None, average_attn_weights=False
    )
    torch.testing.assert_close(result, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(weights, expected_weights, rtol=0, atol=1e-12)
    with torch.no_grad():
        fused, none = layer(x, layer.memory(y, mask))
    assert none is None
    torch.testing.assert_close(fused, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_self_attention_is_multi_head_attention(bias: bool, masked: bool) -> None:
    d_model = 3 * 11
    layer = Attention(
        d_model, d_model, n_heads=H, d_k=11, d_v=11, d_out=d_model, bias=bias
    ).double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.3)
    torchs = torchs_attention(layer, d_model, d_model, d_model, bias)
    x = normal(B, N, d_model)
    result, weights = layer.self_forward(x, causal_mask(N) if masked else None, return_weights=True)
    expected, expected_weights = torchs(
        x, x, x, attn_mask=~causal_mask(N)[0, 0] if masked else None, average_attn_weights=False
    )
    torch.testing.assert_close(result, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(weights, expected_weights, rtol=0, atol=1e-12)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("return_weights", [False, True])
def test_self_attention_is_cross_attention_to_oneself(
    score: str, bias: bool, return_weights: bool
) -> None:
    layer = make_attention(score, d_memory=D_X, bias=bias)
    x, mask = normal(B, N, D_X), causal_mask(N)
    at_once, weights = layer.self_forward(x, mask, return_weights)
    apart, other_weights = layer(x, layer.memory(x, mask), return_weights)
    torch.testing.assert_close(at_once, apart, rtol=0, atol=1e-12)
    if return_weights:
        torch.testing.assert_close(weights, other_weights, rtol=0, atol=1e-12)
    else:
        assert weights is None
        assert other_weights is None


@pytest.mark.parametrize("score", SCORES)
def test_a_memory_serves_queries_one_by_one(score: str) -> None:
    """Projected once, read by any number of queries: what a decoder does at every step."""
    layer = make_attention(score)
    x, memory = normal(B, N, D_X), layer.memory(normal(B, M, D_Y), padding_mask(ALLOWED))
    together, _ = layer(x, memory)
    for n in range(N):
        alone, _ = layer(x[:, n : n + 1], memory)
        torch.testing.assert_close(alone, together[:, n : n + 1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("score", SCORES)
def test_growing_with_a_past_is_the_causal_mask(score: str) -> None:
    layer = make_attention(score, d_memory=D_X)
    x, past = normal(B, N, D_X), Past.empty(1)
    together, _ = layer.self_forward(x, causal_mask(N))
    for n in range(N):
        q, k, v = layer.project(x[:, n : n + 1], layer.joint())
        past = past.extend(B, 1, x.device)
        step = layer.read(q, past.remember(0, k, v))
        torch.testing.assert_close(step, together[:, n : n + 1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("score", SCORES)
def test_raw_values_are_the_memory_itself(score: str) -> None:
    """Without W^V and W^O the result is a mixture of annotations, as in RNNsearch."""
    layer = Attention(D_X, D_Y, n_heads=1, d_k=D_K, d_v=None, d_out=None, score=score).double()
    assert layer.value is None
    assert layer.output is None
    x, y = normal(B, N, D_X), normal(B, M, D_Y)
    result, weights = layer(x, layer.memory(y, padding_mask(ALLOWED)), return_weights=True)
    assert weights is not None
    assert result.shape == (B, N, D_Y)
    torch.testing.assert_close(result, weights[:, 0] @ y, rtol=0, atol=1e-12)
    same, _ = layer(x, layer.memory(y, padding_mask(ALLOWED)))
    torch.testing.assert_close(result, same, rtol=0, atol=1e-12)


def test_raw_values_are_shared_out_to_the_heads() -> None:
    layer = Attention(D_X, 2 * D_V, n_heads=2, d_k=D_K, d_v=None, d_out=None).double()
    x, y = normal(B, N, D_X), normal(B, M, 2 * D_V)
    result, weights = layer(x, layer.memory(y), return_weights=True)
    assert weights is not None
    expected = torch.cat([weights[:, 0] @ y[..., :D_V], weights[:, 1] @ y[..., D_V:]], -1)
    torch.testing.assert_close(result, expected, rtol=0, atol=1e-12)
    layer = Attention(2 * D_V, 2 * D_V, n_heads=2, d_k=D_K, d_v=None, d_out=None).double()
    at_once, _ = layer.self_forward(y, None)
    torch.testing.assert_close(at_once, layer(y, layer.memory(y))[0], rtol=0, atol=1e-12)


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="2 heads cannot share raw values of width 19"):
        Attention(D_X, 19, n_heads=2, d_k=D_K, d_v=None, d_out=None)
    with pytest.raises(ValueError, match=r"\[0, 1\), not 1\.0"):
        make_attention(dropout=1.0)
    with pytest.raises(ValueError, match="unknown score 'cosine'"):
        make_attention("cosine")


@pytest.mark.parametrize("score", SCORES)
def test_dropout_is_for_training_only(score: str) -> None:
    layer = make_attention(score, dropout=0.5)
    x, y = normal(B, N, D_X), normal(B, M, D_Y)
    torch.manual_seed(1)
    first, weights = layer(x, layer.memory(y), return_weights=True)
    torch.manual_seed(1)
    again, _ = layer(x, layer.memory(y))
    other, _ = layer(x, layer.memory(y))
    torch.testing.assert_close(first, again, rtol=0, atol=0)
    assert not torch.equal(first, other)
    layer.eval()
    calm, calm_weights = layer(x, layer.memory(y), return_weights=True)
    torch.testing.assert_close(weights, calm_weights, rtol=0, atol=0)
    torch.testing.assert_close(layer(x, layer.memory(y))[0], calm, rtol=0, atol=1e-12)


@pytest.mark.parametrize("score", SCORES)
def test_nothing_is_stored_on_the_module(score: str) -> None:
    layer = make_attention(score)
    before = {name: set(vars(module)) for name, module in layer.named_modules()}
    layer(normal(B, N, D_X), layer.memory(normal(B, M, D_Y)), return_weights=True)
    assert {name: set(vars(module)) for name, module in layer.named_modules()} == before
    assert not list(layer.buffers())


def test_shapes_are_enforced_while_tests_run() -> None:
    """The signatures' shapes are checked: a memory of another batch is refused."""
    layer = make_attention()
    memory = layer.memory(normal(B, M, D_Y))
    with pytest.raises(TypeCheckError, match="parameter 'k'"):
        attend(layer.score, normal(B + 1, H, N, D_K), memory.key, memory.value)
