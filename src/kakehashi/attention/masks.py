"""Who may attend to whom. One polarity everywhere: True = may attend."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def padding_mask(allowed: Bool[Tensor, "B M"]) -> Bool[Tensor, "B 1 1 M"]:
    """Every head and every query of a sentence may attend to its real tokens."""
    return allowed[:, None, None, :]


def needed_mask(
    allowed: Bool[Tensor, "B M"], dtype: torch.dtype
) -> Float[Tensor, "B 1 1 M"] | None:
    """What of ``padding_mask`` is needed in a search, where every sentence has a real token.

    None where nothing is padded, or else its ``summand``: reading is fastest without a mask.
    """
    return None if bool(allowed.all()) else summand(padding_mask(allowed), dtype)


def causal_mask(n: int, device: torch.device | None = None) -> Bool[Tensor, "1 1 N N"]:
    """Position i may attend to positions 0 to i, never to the future."""
    return torch.ones(1, 1, n, n, dtype=torch.bool, device=device).tril()


def summand(allowed: Bool[Tensor, "*s"], dtype: torch.dtype) -> Float[Tensor, "*s"]:
    """The mask as what is added to scores: 0 where True, else minus infinity.

    For queries each of which may attend to something. One addition is faster than barring keys
    before the softmax and making sure after it that a query without any gets zeros.
    """
    return torch.zeros_like(allowed, dtype=dtype).masked_fill_(~allowed, -torch.inf)
