"""The residual connection around a sublayer, with its normalisation before or after."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kakehashi.attention.dropout import check_probability
from kakehashi.attention.dropout import dropout as drop

EPSILON = 1e-6


def make_norm(kind: str, d_model: int, bias: bool) -> nn.Module:
    """Layer normalisation ("layer") or root-mean-square normalisation ("rms", never a bias).

    Raises:
        ValueError: for any other kind.
    """
    match kind:
        case "layer":
            return nn.LayerNorm(d_model, eps=EPSILON, bias=bias)
        case "rms":
            return nn.RMSNorm(d_model, eps=EPSILON)
    raise ValueError(f"unknown norm {kind!r}: layer or rms")


class Residual(nn.Module):
    """Pre-norm ``x + drop(f(norm(x)))`` or post-norm ``norm(x + drop(f(x)))``.

    Use: ``y = f(residual.before(x)); x = residual.after(x, y)``.

    Raises:
        ValueError: for a position of the norm that is neither "pre" nor "post".
    """

    def __init__(self, norm: nn.Module, position: str, dropout: float) -> None:
        super().__init__()
        if position not in ("pre", "post"):
            raise ValueError(f"unknown position of a norm {position!r}: pre or post")
        self.norm = norm
        self.pre = position == "pre"
        self.dropout = check_probability(dropout)

    def before(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """What the sublayer reads."""
        return self._normed(x) if self.pre else x

    def after(self, x: Float[Tensor, "*B D"], y: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """The stream after the sublayer's result ``y`` is added; a search uses ``y`` up for it."""
        y = drop(y, self.dropout, self.training)
        # With autocast y may be the narrower of the two, which must not become the stream.
        in_place = not torch.is_grad_enabled() and x.dtype == y.dtype
        added = y.add_(x) if in_place else x + y
        return added if self.pre else self._normed(added)

    def _normed(self, x: Tensor) -> Tensor:
        normed: Tensor = self.norm(x)
        return normed
