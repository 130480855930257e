"""The best one-piece extensions of a beam. Shapes: B sentences, R hypotheses, V vocabulary."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from kakehashi.symbols import EOS

FIRST = EOS
"""Padding, unknown and BOS stand before EOS in the vocabulary and are never generated."""
COLUMNS = 64
"""A power of two, for which ``amax`` over lines runs at the speed of memory."""

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

    Largest first, and of equals the lower piece first: ``Tensor.topk`` leaves the order of equals
    open, so rows with a draw at the border of the k are settled by a stable sort. (Pieces of logit
    -inf, which cannot be said, come in any order.)
    """
    eligible = logits[..., FIRST:]
    k = min(k, eligible.shape[-1])
    if logits.device.type == "cpu" and eligible.shape[-1] >= 2 * COLUMNS * (k + 1):
        values, tokens, drawn = _largest_by_columns(eligible, k)
    else:
        values, tokens = eligible.topk(min(k + 1, eligible.shape[-1]))
        drawn = _draw(values, k)
        values, tokens = values[..., :k], tokens[..., :k]
    if bool(drawn.any()):
        ordered, order = eligible[drawn].sort(dim=-1, descending=True, stable=True)
        values[drawn], tokens[drawn] = ordered[..., :k], order[..., :k]
    tokens, order = tokens.sort(dim=-1)
    values, order = values.gather(-1, order).sort(dim=-1, descending=True, stable=True)
    return values, tokens.gather(-1, order) + FIRST


def _draw(values: Float[Tensor, "*rows n"], k: int) -> Bool[Tensor, "*rows"]:
    """Rows of ordered values whose first k are not certain: the next one is as large."""
    if values.shape[-1] <= k:
        return torch.zeros_like(values[..., 0], dtype=torch.bool)
    return (values[..., k - 1] == values[..., k]) & (values[..., k] > -torch.inf)


def _largest_by_columns(
    eligible: Float[Tensor, "*rows V"], k: int
) -> tuple[Float[Tensor, "*rows k"], Int[Tensor, "*rows k"], Bool[Tensor, "*rows"]]:
    """``eligible.topk(k)``, and in which rows a draw leaves it open, in a third of the time.

    A row is read as a table of ``COLUMNS`` columns: the k largest stand in the k columns (and the
    rest that fills no line of the table) of largest maximum.
    """
    lines = eligible.shape[-1] // COLUMNS
    table = eligible[..., : lines * COLUMNS].unflatten(-1, (lines, COLUMNS))
    largest, column = table.amax(dim=-2).topk(k + 1)
    index = column[..., None, :k].expand(*column.shape[:-1], lines, k)
    rest = eligible[..., lines * COLUMNS :]
    candidates = torch.cat([table.gather(-1, index).flatten(-2), rest], dim=-1)
    values, place = candidates.topk(k + 1)
    drawn = _draw(largest, k) | _draw(values, k)
    place = place[..., :k]
    inside = place < lines * k
    line, chosen = place // k, column.gather(-1, place % k)
    token = torch.where(inside, line * COLUMNS + chosen, place + lines * (COLUMNS - k))
    return values[..., :k], token, drawn


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
