"""Attention(Q, K, V) = V Softmax(f(Q, K)): the one function that all attention here goes through.

The literature writes vectors as columns; code has them as rows, batch first: ``weights`` [B H N M]
is the transpose of that Softmax, and each row of it sums to 1 over the M keys.
Shapes: B batch, H heads, N queries, M keys, Dk width of keys, Dv width of values.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from kakehashi.attention.dropout import dropout as drop
from kakehashi.attention.scores import Score

SHORT, TINY = 24 * 24, 400
"""On a CPU the fused kernel is the slower one for at most SHORT queries times keys, but products of
fewer than TINY multiplications are slower still."""

Allowed = Bool[Tensor, "#B #H #N #M"] | Float[Tensor, "#B #H #N #M"] | None


def attend(
    score: Score,
    q: Float[Tensor, "B H N Dq"],
    k: Float[Tensor, "B H M Dk"],
    v: Float[Tensor, "B H M Dv"],
    allowed: Allowed = None,
    *,
    dropout: float = 0.0,
    return_weights: bool = False,
) -> tuple[Float[Tensor, "B H N Dv"], Float[Tensor, "B H N M"] | None]:
    """Mix the values of each query's keys, in the proportions of softmax(score).

    Args:
        score: f, how well a query fits a key; a mere (scaled) dot product runs on the fused kernel
            unless weights are wanted or dropped, or that kernel is the slower one.
        q: queries.
        k: keys.
        v: values, one for each key.
        allowed: True where a query may attend to a key; None allows everything. A query that may
            attend to nothing gets zeros. Or the mask's ``summand``, which is faster.
        dropout: probability with which a weight is dropped; pass 0 when not training.
        return_weights: also return the weights, before dropout.

    Returns:
        The context of each query, and the weights if asked for, else None.
    """
    wanted = return_weights or dropout > 0.0
    if allowed is not None and allowed.dtype != torch.bool:
        allowed = allowed.to(q.dtype)  # with autocast a memory's need not be the queries'
    if score.scale is not None and not wanted and not _short(q, k, allowed):
        fused = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, scale=score.scale)
        return fused, None
    weights = attention_weights(score, q, k, allowed)
    context = drop(weights, dropout, training=True) @ v
    return context, weights if return_weights else None


def _short(q: Tensor, k: Tensor, allowed: Tensor | None) -> bool:
    """Whether the fused kernel would be slower than the plain products.

    In training its backward takes up to 3 times as long for sentences of 24 tokens and fewer; in a
    search it takes up to 1.5 times as long where no boolean mask has to be applied
    (scripts/benchmark/attention.py).
    """
    size = q.shape[2] * k.shape[2]
    if q.device.type != "cpu" or size > SHORT:
        return False
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad):
        return True
    return size * q.shape[3] >= TINY and (allowed is None or allowed.dtype != torch.bool)


def attention_weights(
    score: Score,
    q: Float[Tensor, "B H N Dq"],
    k: Float[Tensor, "B H M Dk"],
    allowed: Allowed = None,
) -> Float[Tensor, "B H N M"]:
    """Softmax(f(Q, K)) over the keys.

    A row without an allowed key is all zeros, never NaN, if ``allowed`` is boolean.
    """
    scores = score(q, k)
    if allowed is None:
        return torch.softmax(scores, dim=-1)
    if allowed.dtype != torch.bool:
        return torch.softmax(scores + allowed, dim=-1)
    # The lowest finite number, not -inf: a row of -inf would give NaN here and in the gradient.
    scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, dim=-1).masked_fill(~allowed, 0.0)
