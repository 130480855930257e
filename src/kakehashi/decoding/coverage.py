"""Whether a translation has looked at all of its source."""

from jaxtyping import Bool, Float
from torch import Tensor

LEAST = 1e-6
"""A source piece that was attended to less counts as attended to so much."""


def coverage_penalty(
    attended: Float[Tensor, "B K M"], allowed: Bool[Tensor, "B M"], weight: float
) -> Float[Tensor, "B K"]:
    """``weight * sum_i log min(sum_j p_ij, 1)`` over the source pieces i, EOS among them.

    Wu et al. (2016), "Google's Neural Machine Translation System", equation 14; p_ij is how much
    step j attends to piece i, ``attended`` the sum over the steps. Never positive, and 0 where
    every piece was attended to by 1 in all.
    """
    logarithms = attended.clamp(LEAST, 1).log().masked_fill(~allowed.unsqueeze(1), 0)
    return weight * logarithms.sum(dim=-1)
