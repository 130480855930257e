"""The best one-piece extensions of a beam. Shapes: B sentences, R hypotheses, V vocabulary."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kakehashi.decoding.ranking import greatest, stable_top
from kakehashi.symbols import EOS

FIRST = EOS
"""Padding, unknown and BOS stand before EOS in the vocabulary and are never generated."""

ROWS = 64


@dataclass(frozen=True)
class Extensions:
    """Some of the extensions of each sentence's hypotheses, best first."""

    competing: Float[Tensor, "B k"]
    """What the whole hypothesis competes with; -inf where there is none."""
    row: Int[Tensor, "B k"]
    """Which of the R hypotheses is extended."""
    token: Int[Tensor, "B k"]
    log_probability: Float[Tensor, "B k"]
    """The model's own, of the whole hypothesis, natural logarithm."""

    def at(self, places: Int[Tensor, "B n"]) -> "Extensions":
        """Those of them that stand at these places."""
        return Extensions(
            self.competing.gather(1, places),
            self.row.gather(1, places),
            self.token.gather(1, places),
            self.log_probability.gather(1, places),
        )


@dataclass(frozen=True)
class Step:
    """What comes of a step of a beam of K, both best first."""

    first: Extensions
    """The K best extensions: those of them that end are translations."""
    going: Extensions
    """The K best that do not end: the search goes on with them."""


def step_of(ordered: Extensions, beam: int) -> Step:
    """The step, given the 2K best extensions in their order, or all where there are fewer.

    Where fewer than K do not end, ones that do fill up those that go on.
    """
    not_ending_first = (ordered.token == EOS).byte().sort(dim=1, stable=True).indices
    first = Extensions(
        ordered.competing[:, :beam],
        ordered.row[:, :beam],
        ordered.token[:, :beam],
        ordered.log_probability[:, :beam],
    )
    return Step(first, ordered.at(not_ending_first[:, :beam]))


def best_token(logits: Float[Tensor, "rows V"]) -> Int[Tensor, "rows 1"]:
    """The piece of the largest logit among those that may be generated, of equals the first."""
    return (greatest(logits[:, FIRST:]) + FIRST).unsqueeze(1)


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


def best_extensions(logits: Float[Tensor, "B R V"], live: Float[Tensor, "B R"], beam: int) -> Step:
    """A step among the R x V extensions of every sentence at once, R at most K = ``beam``.

    Pieces compete by the log probability of the hypothesis they end, ``live`` + log softmax of the
    logits over the whole vocabulary. Equals are taken in the order of row and piece. Of a row K + 1
    pieces are looked at, one of which may be EOS, and of all rows 2K, of which at most R are.
    """
    _, tokens = top_tokens(logits, beam + 1)
    scores = live.unsqueeze(-1) + log_probabilities(logits, tokens)
    per_row = scores.shape[-1]
    ordered, order = scores.flatten(1).sort(dim=1, descending=True, stable=True)
    ordered, order = ordered[:, : 2 * beam], order[:, : 2 * beam]
    token = tokens.flatten(1).gather(1, order)
    return step_of(Extensions(ordered, order // per_row, token, ordered), beam)
