"""What competes at each step of a search: log probabilities within the rules of each sentence.

Shapes: B sentences still searched, R hypotheses of each, L steps taken, V vocabulary. ``sentence``
[B] holds their places in the batch that the search was given.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from kakehashi.decoding.config import DecodingConfig
from kakehashi.decoding.limits import min_lengths
from kakehashi.decoding.phrases import Forbidden, Prefix
from kakehashi.decoding.repetition import NoRepeat, penalise_repetition
from kakehashi.decoding.required import Required
from kakehashi.decoding.rules import Rules
from kakehashi.errors import ConfigError
from kakehashi.symbols import BOS, EOS, PAD, UNK


@runtime_checkable
class Adjustment(Protocol):
    """Something that changes what competes."""

    def adjust(
        self,
        scores: Float[Tensor, "B R V"],
        ids: Int[Tensor, "B R L"],
        sentence: Int[Tensor, " B"],
    ) -> None:
        """Change, in place, the log probability that each piece competes with after ``ids``."""


@dataclass(frozen=True)
class MinimumLength:
    """No end before a translation is long enough."""

    least: Int[Tensor, " S"]
    """Pieces of each sentence's translation, EOS counted."""

    def adjust(
        self,
        scores: Float[Tensor, "B R V"],
        ids: Int[Tensor, "B R L"],
        sentence: Int[Tensor, " B"],
    ) -> None:
        """Bar EOS where it would come too soon."""
        short = self.least[sentence] > ids.shape[-1] + 1
        scores[..., EOS].masked_fill_(short.unsqueeze(1), -torch.inf)


@dataclass(frozen=True)
class Competition:
    """The rules and penalties of a search; a search without any has none of these."""

    barred: tuple[int, ...]
    """Pieces that are never said, unless by a forced prefix."""
    repetition_penalty: float
    adjustments: tuple[Adjustment, ...]
    """In their order."""
    prefix: Prefix | None
    required: Required | None

    def scores(
        self,
        logits: Float[Tensor, "B R V"],
        ids: Int[Tensor, "B R L"],
        sentence: Int[Tensor, " B"],
    ) -> tuple[Float[Tensor, "B R V"], Float[Tensor, "B R V"]]:
        """The model's own log probability of each next piece, and what the piece competes with.

        The latter is the former but for a repetition penalty, and -inf where a rule bars a piece;
        it is not renormalised.
        """
        own = logits.log_softmax(dim=-1, dtype=torch.float32)
        base = own
        if self.repetition_penalty != 1:
            penalised = penalise_repetition(logits.float(), ids, self.repetition_penalty)
            base = penalised.log_softmax(dim=-1)
        scores = base.clone()
        scores[..., list(self.barred)] = -torch.inf
        for adjustment in self.adjustments:
            adjustment.adjust(scores, ids, sentence)
        if self.prefix is not None:
            self.prefix.force(scores, base, ids, sentence)
        return own, scores


def let_end(
    scores: Float[Tensor, "B R V"],
    own: Float[Tensor, "B R V"],
    alive: Bool[Tensor, "B R"],
    waiting: Bool[Tensor, " B"],
) -> None:
    """Where rules leave the last hypotheses of a sentence nothing to say, let them end after all.

    Args:
        scores: what competes; changed in place.
        own: the model's log probabilities.
        alive: hypotheses that may go on.
        waiting: sentences that have no finished translation yet.
    """
    stuck = waiting & ~((scores.amax(dim=-1) > -torch.inf) & alive).any(dim=1)
    if bool(stuck.any()):
        scores[stuck, :, EOS] = own[stuck, :, EOS]


def competition(
    config: DecodingConfig,
    rules: Sequence[Rules] | None,
    source_lengths: Int[Tensor, " S"],
    limits: Int[Tensor, " S"],
    *,
    allow_unknown: bool = False,
    needed: bool = False,
    eager: bool = False,
) -> Competition | None:
    """What the settings and the rules of S sentences come to; None where they change nothing.

    Args:
        config: the settings.
        rules: of each sentence, or None.
        source_lengths: pieces of each source, EOS counted.
        limits: most pieces of each translation, EOS counted.
        allow_unknown: whether the unknown piece may be said.
        needed: never return None.
        eager: whether required phrases are said as soon as they can, see ``Required``.
    """
    adjustments: list[Adjustment] = []
    device = limits.device
    given = list(rules) if rules is not None and not all(r.empty for r in rules) else []
    required = prefix = None
    if config.min_ratio > 0:
        adjustments.append(MinimumLength(min_lengths(source_lengths, config)))
    if config.no_repeat_ngram:
        adjustments.append(NoRepeat(config.no_repeat_ngram))
    if any(r.forbidden for r in given):
        adjustments.append(Forbidden.of([r.forbidden for r in given], device))
    if any(r.required for r in given):
        if not allow_unknown and any(UNK in phrase for r in given for phrase in r.required):
            raise ConfigError("a required phrase holds an unknown piece, which is never said")
        required = Required.of(given, limits, eager)
        adjustments.append(required)
    if any(r.prefix for r in given):
        prefix = Prefix.of([r.prefix for r in given], device)
    if not (needed or adjustments or prefix or allow_unknown or config.repetition_penalty != 1):
        return None
    barred = (PAD, BOS) if allow_unknown else (PAD, UNK, BOS)
    return Competition(barred, config.repetition_penalty, tuple(adjustments), prefix, required)
