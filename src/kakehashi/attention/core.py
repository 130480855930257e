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

SHORT = 24 * 24
"""Queries times keys up to which a training step on a CPU goes without the fused kernel."""


def attend(
    score: Score,
    q: Float[Tensor, "B H N Dq"],
    k: Float[Tensor, "B H M Dk"],
    v: Float[Tensor, "B H M Dv"],
    allowed: Bool[Tensor, "#B #H #N #M"] | None = None,
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
            attend to nothing gets zeros.
        dropout: probability with which a weight is dropped; pass 0 when not training.
        return_weights: also return the weights, before dropout.

    Returns:
        The context of each query, and the weights if asked for, else None.
    """
    wanted = return_weights or dropout > 0.0
    if score.scale is not None and not wanted and not _short_training_rows(q, k):
        fused = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, scale=score.scale)
        return fused, None
    weights = attention_weights(score, q, k, allowed)
    context = drop(weights, dropout, training=True) @ v
    return context, weights if return_weights else None


def _short_training_rows(q: Tensor, k: Tensor) -> bool:
    """Whether the fused kernel would be slower than the plain products.

    On a CPU its backward takes 1.2 to 3 times as long for sentences of 24 tokens and fewer
    (scripts/benchmark/attention.py).
    """
    learning = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad)
    return learning and q.device.type == "cpu" and q.shape[2] * k.shape[2] <= SHORT


def attention_weights(
    score: Score,
    q: Float[Tensor, "B H N Dq"],
    k: Float[Tensor, "B H M Dk"],
    allowed: Bool[Tensor, "#B #H #N #M"] | None = None,
) -> Float[Tensor, "B H N M"]:
    """Softmax(f(Q, K)) over the keys; a row without an allowed key is all zeros, never NaN."""
    scores = score(q, k)
    if allowed is None:
        return torch.softmax(scores, dim=-1)
    # The lowest finite number, not -inf: a row of -inf would give NaN here and in the gradient.
    scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, dim=-1).masked_fill(~allowed, 0.0)
