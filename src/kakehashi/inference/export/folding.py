"""A Transformer's attention in the one form that every other runtime knows: the scaled dot product.

``dot`` and ``general`` are a scaled dot product of other queries, so a constant factor and each
head's matrix can be multiplied into W^Q once and for all:

    K^T Q        = K^T (sqrt(d_k) Q) / sqrt(d_k)
    K^T W_h Q_h  = K^T (sqrt(d_k) W_h Q_h) / sqrt(d_k)

The sums are formed in float64 and rounded once.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from kakehashi.attention import Attention
from kakehashi.attention.scores import Dot, General, ScaledDot
from kakehashi.errors import ConfigError
from kakehashi.models.interface import TranslationModel
from kakehashi.models.transformer import Transformer


def transformer(model: TranslationModel[Any], format_name: str) -> Transformer:
    """The model, if it is one that can be written in another format at all.

    Raises:
        ConfigError: for an RNN, and for attention with the additive score.
    """
    if not isinstance(model, Transformer):
        raise ConfigError(
            f"this is the recurrent model, and {format_name} runs Transformers only: "
            "use it with Kakehashi's own engine, --engine torch"
        )
    if model.config.score.name == "additive":
        raise ConfigError(
            f"the model attends with the additive score, w^T tanh(q + k), and {format_name} has "
            "dot products only: use it with Kakehashi's own engine, --engine torch"
        )
    return model


def scaled_dot_query(attention: Attention) -> tuple[Tensor, Tensor | None]:
    """Weight [H Dk, D] and bias [H Dk] of the W^Q with which f is the scaled dot product."""
    weight, bias = attention.query.weight.detach(), bias_of(attention.query)
    return _folded(attention, weight), None if bias is None else _folded(attention, bias)


def _folded(attention: Attention, rows: Tensor) -> Tensor:
    """Rows of W^Q or of its bias, head by head, multiplied with what the score does to a query."""
    score, heads = attention.score, attention.n_heads
    if isinstance(score, ScaledDot):
        return rows
    per_head = rows.double().unflatten(0, (heads, -1))
    scale = math.sqrt(per_head.shape[1])
    if isinstance(score, General):
        per_head = torch.einsum("hkq,hq...->hk...", score.weight.detach().double(), per_head)
    else:
        assert isinstance(score, Dot)
    folded: Tensor = (scale * per_head).flatten(0, 1).to(rows.dtype)
    return folded


def head_first(attention: Attention, head: int) -> None:
    """Exchange a head (from 0) with the first: the heads' order means nothing to what comes out."""
    heads = attention.n_heads
    order = list(range(heads))
    order[0], order[head] = head, 0
    linears = (attention.query, attention.key, attention.value)
    rows = [p for linear in linears if linear is not None for p in linear.parameters()]
    if isinstance(attention.score, General):
        rows.append(attention.score.weight)
    with torch.no_grad():
        for parameter in rows:
            parameter.copy_(parameter.unflatten(0, (heads, -1))[order].flatten(0, 1))
        assert attention.output is not None
        columns = attention.output.weight
        columns.copy_(columns.unflatten(1, (heads, -1))[:, order].flatten(1, 2))


def bias_of(module: nn.Linear | nn.LayerNorm) -> Tensor | None:
    """Its bias, if it has one."""
    bias: Tensor | None = module.bias
    return None if bias is None else bias.detach()


def zeros_for(module: nn.Linear | nn.LayerNorm) -> Tensor:
    """Its bias, or the zeros that say the same where a format must have one."""
    bias = bias_of(module)
    return module.weight.detach().new_zeros(module.weight.shape[0]) if bias is None else bias
