"""The best one-piece extensions of a beam. Shapes: B sentences, R hypotheses, V vocabulary."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kakehashi.symbols import EOS

FIRST = EOS
"""Padding, unknown and BOS stand before EOS in the vocabulary and are never generated."""


@dataclass(frozen=True)
class Extensions:
    """The K best extensions of each sentence's hypotheses, best first."""

    log_probability: Float[Tensor, "B K"]
    """Of the whole hypothesis, natural logarithm."""
    row: Int[Tensor, "B K"]
    """Which of the R hypotheses is extended."""
    token: Int[Tensor, "B K"]


def top_tokens(
    logits: Float[Tensor, "*rows V"], k: int
) -> tuple[Float[Tensor, "*rows k"], Int[Tensor, "*rows k"]]:
    """The k largest logits among the pieces that may be generated, and the pieces.

    Largest first, and of equals the lower piece first: ``Tensor.topk`` leaves the order of equals
    open, so rows with a draw at the border of the k are settled by a stable sort.
    """
    eligible = logits[..., FIRST:]
    k = min(k, eligible.shape[-1])
    values, tokens = eligible.topk(min(k + 1, eligible.shape[-1]))
    drawn = values[..., k - 1] == values[..., -1]
    if values.shape[-1] > k and bool(drawn.any()):
        ordered, order = eligible[drawn].sort(dim=-1, descending=True, stable=True)
        values[drawn], tokens[drawn] = ordered[..., : k + 1], order[..., : k + 1]
    tokens, order = tokens[..., :k].sort(dim=-1)
    values = values[..., :k].gather(-1, order)
    values, order = values.sort(dim=-1, descending=True, stable=True)
    return values, tokens.gather(-1, order) + FIRST


def best_extensions(
    logits: Float[Tensor, "B R V"], live: Float[Tensor, "B R"], beam: int
) -> Extensions:
    """The ``beam`` best of the R x V extensions of every sentence at once.

    Pieces compete by the log probability of the hypothesis they end, ``live`` + log softmax of the
    logits over the whole vocabulary. Equals are taken in the order of row and piece.
    """
    _, tokens = top_tokens(logits, beam)
    # One fused pass; logsumexp, which would do, takes four and half as long again.
    log_softmax = logits.log_softmax(dim=-1, dtype=torch.float32)
    scores = live.unsqueeze(-1) + log_softmax.gather(-1, tokens)
    per_row = scores.shape[-1]
    ordered, order = scores.flatten(1).sort(dim=1, descending=True, stable=True)
    order = order[:, :beam]
    return Extensions(ordered[:, :beam], order // per_row, tokens.flatten(1).gather(1, order))
