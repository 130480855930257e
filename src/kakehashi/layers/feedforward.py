"""The position-wise sublayer of a Transformer."""

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from kakehashi.attention.dropout import check_probability
from kakehashi.attention.dropout import dropout as drop


class FeedForward(nn.Module):
    """``W2 drop(act(W1 x))`` with ReLU or GELU, or SwiGLU ``W2 drop(silu(W1 x) * W3 x)``.

    SwiGLU (Shazeer, 2020) has a third matrix; choose d_feedforward two thirds as large for the
    same number of parameters.

    Raises:
        ValueError: for an activation that is not relu, gelu or swiglu.
    """

    def __init__(
        self, d_model: int, d_feedforward: int, activation: str, bias: bool, dropout: float
    ) -> None:
        super().__init__()
        if activation not in ("relu", "gelu", "swiglu"):
            raise ValueError(f"unknown activation {activation!r}: relu, gelu or swiglu")
        self.activation = activation
        self.inner = nn.Linear(d_model, d_feedforward, bias=bias)
        self.gate = nn.Linear(d_model, d_feedforward, bias=bias) if activation == "swiglu" else None
        self.outer = nn.Linear(d_feedforward, d_model, bias=bias)
        self.dropout = check_probability(dropout)

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        inner = self.inner(x)
        if self.gate is not None:
            hidden = F.silu(inner) * self.gate(x)
        elif self.activation == "gelu":
            hidden = F.gelu(inner)
        else:
            hidden = F.relu(inner, inplace=True)
        result: Tensor = self.outer(drop(hidden, self.dropout, self.training))
        return result
