"""Who may attend to whom. One polarity everywhere: True = may attend."""

import torch
from jaxtyping import Bool
from torch import Tensor


def padding_mask(allowed: Bool[Tensor, "B M"]) -> Bool[Tensor, "B 1 1 M"]:
    """Every head and every query of a sentence may attend to its real tokens."""
    return allowed[:, None, None, :]


def needed_mask(allowed: Bool[Tensor, "B M"]) -> Bool[Tensor, "B 1 1 M"] | None:
    """``padding_mask``, or None where nothing is padded: reading is faster without one."""
    return None if bool(allowed.all()) else padding_mask(allowed)


def causal_mask(n: int, device: torch.device | None = None) -> Bool[Tensor, "1 1 N N"]:
    """Position i may attend to positions 0 to i, never to the future."""
    return torch.ones(1, 1, n, n, dtype=torch.bool, device=device).tril()
