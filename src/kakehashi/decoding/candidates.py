"""The best one-piece extensions of a beam. Shapes: B sentences, R hypotheses, V vocabulary."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kakehashi.decoding.ranking import stable_top
from kakehashi.symbols import EOS

FIRST = EOS
"""Padding, unknown and BOS stand before EOS in the vocabulary and are never generated."""

ROWS = 64


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

    Largest first, and of equals the lower piece first.
    """
    values, places = stable_top(logits[..., FIRST:], k)
    return values, places + FIRST


def log_probabilities(
    logits: Float[Tensor, "B R V"], tokens: Int[Tensor, "B R k"]
) -> Float[Tensor, "B R k"]:
    """The log softmax of the logits, over the whole vocabulary, at some pieces.

    One fused pass; logsumexp, which would do, takes four and half as long again. A few rows at a
    time: what is thrown away at once should not go through memory.
    """
    rows = zip(logits.flatten(0, 1).split(ROWS), tokens.flatten(0, 1).split(ROWS), strict=True)
    found = [part.log_softmax(-1, dtype=torch.float32).gather(-1, at) for part, at in rows]
    return torch.cat(found).view(tokens.shape)


def best_extensions(
    logits: Float[Tensor, "B R V"], live: Float[Tensor, "B R"], beam: int
) -> Extensions:
    """The ``beam`` best of the R x V extensions of every sentence at once.

    Pieces compete by the log probability of the hypothesis they end, ``live`` + log softmax of the
    logits over the whole vocabulary. Equals are taken in the order of row and piece.
    """
    _, tokens = top_tokens(logits, beam)
    scores = live.unsqueeze(-1) + log_probabilities(logits, tokens)
    per_row = scores.shape[-1]
    ordered, order = scores.flatten(1).sort(dim=1, descending=True, stable=True)
    order = order[:, :beam]
    return Extensions(ordered[:, :beam], order // per_row, tokens.flatten(1).gather(1, order))
