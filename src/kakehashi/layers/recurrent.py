"""The gated recurrent unit, taken apart so that a decoder can put attention into it."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn


class GRUCell(nn.Module):
    """A gated recurrent unit (Cho et al., 2014) whose input projection is done by the caller.

    With input gates ``g = W x + b`` in three parts r, z, n and state h:

        r = sigmoid(g_r + U_r h)   z = sigmoid(g_z + U_z h)   n = tanh(g_n + r * (U_n h + b_n))
        h' = (1 - z) * n + z * h

    which is ``torch.nn.GRUCell`` (it applies r after U_n, the paper before).
    """

    def __init__(self, d_hidden: int) -> None:
        super().__init__()
        self.recurrent = nn.Linear(d_hidden, 3 * d_hidden)
        for parameter in self.recurrent.parameters():
            nn.init.uniform_(parameter, -1 / math.sqrt(d_hidden), 1 / math.sqrt(d_hidden))
        for block in self.recurrent.weight.data.split(d_hidden):
            nn.init.orthogonal_(block)

    def forward(
        self, gates: Float[Tensor, "*B G"], hidden: Float[Tensor, "*B D"]
    ) -> Float[Tensor, "*B D"]:
        """The next state, G = 3 D."""
        parts = [2 * hidden.shape[-1], hidden.shape[-1]]
        input_rz, input_n = gates.split(parts, -1)
        hidden_rz, hidden_n = self.recurrent(hidden).split(parts, -1)
        reset, update = torch.sigmoid(input_rz + hidden_rz).chunk(2, -1)
        candidate = torch.tanh(input_n + reset * hidden_n)
        return torch.lerp(candidate, hidden, update)


def maxout(x: Float[Tensor, "*B D2"]) -> Float[Tensor, "*B D"]:
    """The larger of each two units (Goodfellow et al., 2013); unit j is paired with D + j."""
    first, second = x.chunk(2, -1)
    return torch.maximum(first, second)
