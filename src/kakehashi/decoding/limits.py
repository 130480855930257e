"""How short and how long a translation may be: a function of its sentence alone."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from kakehashi.decoding.config import DecodingConfig


def max_lengths(allowed: Bool[Tensor, "B M"], config: DecodingConfig) -> Int[Tensor, " B"]:
    """Most pieces, EOS included, each sentence's translation may have: at least 1.

    ``floor(max_ratio * source pieces) + max_extra``, the source's EOS counted.
    """
    source = allowed.sum(dim=1).to(torch.float64)
    return (source * config.max_ratio).floor().to(torch.int64) + config.max_extra


def min_lengths(source_lengths: Int[Tensor, " B"], config: DecodingConfig) -> Int[Tensor, " B"]:
    """Fewest pieces, EOS included: ``floor(min_ratio * source pieces)``, its EOS counted."""
    return (source_lengths.to(torch.float64) * config.min_ratio).floor().to(torch.int64)
