"""Dropout whose random bits are cheap on a CPU."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F


def keep_mask(shape: torch.Size, p: float) -> tuple[Tensor, float]:
    """A boolean CPU mask, each element True with probability 1 - round(256 p) / 256.

    One random 64-bit word decides eight elements: about a tenth of the time of ``bernoulli_``.
    Drawn from torch's global generator. Also returns the factor that keeps the expectation.
    At least one and at most 255 of 256 elements are dropped, however close p is to 0 or 1.
    """
    dropped = min(max(1, round(256 * p)), 255)
    n = shape.numel()
    words = torch.empty((n + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
    keep = words.view(torch.uint8)[:n].view(shape) >= dropped
    return keep, 256.0 / (256 - dropped)


def check_probability(p: float) -> float:
    """The given probability of dropping an element.

    Raises:
        ValueError: if it does not lie in [0, 1).
    """
    if not 0.0 <= p < 1.0:
        raise ValueError(f"a dropout probability lies in [0, 1), not {p}")
    return p


class _MaskedScale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, keep: Tensor, scale: float) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(keep)
        ctx.scale = scale
        return (x * keep).mul_(scale)

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[no-untyped-def]
        (keep,) = ctx.saved_tensors
        return (gradients[0] * keep).mul_(ctx.scale), None, None


def dropout(x: Float[Tensor, "*shape"], p: float, training: bool) -> Float[Tensor, "*shape"]:
    """Zero each element with probability p and scale the rest so that the mean stays (p < 1).

    On a CPU the probability is a multiple of 1/256; elsewhere this is ``torch``'s own dropout.
    """
    if not training or p == 0.0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, p, training=True)
    keep, scale = keep_mask(x.shape, p)
    dropped: Tensor = _MaskedScale.apply(x, keep, scale)  # type: ignore[no-untyped-call]
    return dropped
