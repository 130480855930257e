"""The best one-piece extensions of a beam.

Shapes: B sentences, R hypotheses, V vocabulary, S pieces that there are logits of.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kakehashi.decoding.ranking import RankedRows, greatest
from kakehashi.symbols import EOS

FIRST = EOS
"""Padding, unknown and BOS stand before EOS in the vocabulary and are never generated."""

ROWS = 64


@dataclass(frozen=True)
class Pieces:
    """What the columns of logits stand for."""

    numbers: Int[Tensor, " S"] | None = None
    """In ascending order; None: the whole vocabulary."""
    first: int = FIRST
    """The column of the first piece that may be generated, EOS."""

    @classmethod
    def of(cls, numbers: Int[Tensor, " S"] | None) -> "Pieces":
        """These pieces, EOS among them."""
        return cls() if numbers is None else cls(numbers, int((numbers < FIRST).sum()))

    def at(self, columns: Int[Tensor, "*s"]) -> Int[Tensor, "*s"]:
        """The pieces of some columns."""
        return columns if self.numbers is None else self.numbers[columns]


ALL = Pieces()


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


def best_column(logits: Float[Tensor, "rows S"], pieces: Pieces = ALL) -> Int[Tensor, "rows 1"]:
    """Where the largest logit of a piece that may be generated stands, of equals the first."""
    return (greatest(logits[:, pieces.first :]) + pieces.first).unsqueeze(1)


def log_probabilities(
    logits: Float[Tensor, "B R S"], columns: Int[Tensor, "B R k"]
) -> Float[Tensor, "B R k"]:
    """The log softmax of the logits, over all there are, in some columns.

    One fused pass; logsumexp, which would do, takes four and half as long again. A few rows at a
    time: what is thrown away at once should not go through memory.
    """
    rows = zip(logits.flatten(0, 1).split(ROWS), columns.flatten(0, 1).split(ROWS), strict=True)
    found = [part.log_softmax(-1, dtype=torch.float32).gather(-1, at) for part, at in rows]
    return torch.cat(found).view(columns.shape)


def best_extensions(
    logits: Float[Tensor, "B R S"], live: Float[Tensor, "B R"], beam: int, pieces: Pieces = ALL
) -> Step:
    """A step among the R x S extensions of every sentence at once, R at most K = ``beam``.

    Pieces compete by the log probability of the hypothesis they end, ``live`` + log softmax of the
    logits over all there are. Equals are taken in the order of row and piece (of different rows, if
    they are equal to the last digit on the way as well). 2K are looked at, of which at most R end.
    """
    rows = RankedRows(logits, pieces.first)
    # log softmax = (logit - greatest) - log sum, where the greatest has no more than its - log sum:
    # known there, it is known everywhere, to the last digit in this order of operations.
    peak = rows.greatest().unsqueeze(-1)
    share = log_probabilities(logits, peak)[..., 0]
    greatest = logits.gather(-1, peak)[..., 0].to(share.dtype)
    _, row, column = rows.best(live + share - greatest, 2 * beam)
    logit = logits.flatten(1).gather(1, row * logits.shape[-1] + column).to(share.dtype)
    scores = live.gather(1, row) + ((logit - greatest.gather(1, row)) + share.gather(1, row))
    scores, order = scores.sort(dim=1, descending=True, stable=True)
    token = pieces.at(column.gather(1, order))
    return step_of(Extensions(scores, row.gather(1, order), token, scores), beam)
