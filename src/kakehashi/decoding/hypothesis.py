"""What a search returns, and how long it may go on."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from kakehashi.decoding.config import DecodingConfig


@dataclass(frozen=True)
class Hypothesis:
    """One translation found by a search."""

    ids: tuple[int, ...]
    """Vocabulary entries without BOS and EOS."""
    score: float
    """What ranks: ``log_probability / length ** length_penalty``, EOS counted (as CTranslate2 has
    it), plus the coverage penalty; with a repetition penalty, its log probabilities."""
    log_probability: float
    """Sum of the model's own natural log probabilities of the pieces and of EOS, whatever rules and
    penalties had a say in the choice: what forced decoding gives the same pieces."""
    finished: bool
    """Whether it ended by itself; False where the length limit cut it, then it has no EOS."""


def max_lengths(allowed: Bool[Tensor, "B M"], config: DecodingConfig) -> Int[Tensor, " B"]:
    """Most pieces, EOS included, each sentence's translation may have: at least 1.

    ``floor(max_ratio * source pieces) + max_extra``, the source's EOS counted.
    """
    source = allowed.sum(dim=1).to(torch.float64)
    return (source * config.max_ratio).floor().to(torch.int64) + config.max_extra


def min_lengths(source_lengths: Int[Tensor, " B"], config: DecodingConfig) -> Int[Tensor, " B"]:
    """Fewest pieces, EOS included: ``floor(min_ratio * source pieces)``, its EOS counted."""
    return (source_lengths.to(torch.float64) * config.min_ratio).floor().to(torch.int64)
