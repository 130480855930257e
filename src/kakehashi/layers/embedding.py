"""Token embeddings with sinusoidal positions."""

import math
from functools import lru_cache

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from kakehashi.attention.dropout import check_probability
from kakehashi.attention.dropout import dropout as drop


def sinusoids(
    n: int,
    d_model: int,
    device: torch.device | None = None,
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "{n} {d_model}"]:
    """Positions 0 to n-1 (Vaswani et al., 2017, section 3.5), all sines before all cosines.

    Column j < D/2 is sin(pos / 10000^(2j/D)), column D/2 + j the cosine of the same angle: the
    half-split order that Marian, Hugging Face and CTranslate2 use. D is even.
    """
    position = torch.arange(n, dtype=torch.float64, device=device)
    frequency = 10000.0 ** (
        -2.0 * torch.arange(d_model // 2, dtype=torch.float64, device=device) / d_model
    )
    angle = position[:, None] * frequency
    return torch.cat([angle.sin(), angle.cos()], dim=-1).to(dtype)


@lru_cache(maxsize=16)
def _table(n: int, d_model: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    # Search runs under inference_mode, and a tensor made there could not be trained with later.
    with torch.inference_mode(False):
        return sinusoids(n, d_model, device, dtype)


class PositionalEmbedding(nn.Module):
    """``dropout(E[token] sqrt(d_model) + sinusoid[position])``; the table may be shared.

    There is no longest sequence. The sinusoids are no part of the module, neither parameter nor
    buffer, so copies of a model (averages, processes) never differ by how far each has counted.
    """

    def __init__(self, table: nn.Embedding, dropout: float) -> None:
        super().__init__()
        self.table = table
        self.dropout = check_probability(dropout)
        self.scale = math.sqrt(table.embedding_dim)

    def forward(self, tokens: Int[Tensor, "B N"], offset: int = 0) -> Float[Tensor, "B N D"]:
        """Embed tokens that stand at positions ``offset`` and after."""
        return self._embed(tokens, self._places(offset, tokens.shape[1]))

    def at(self, tokens: Int[Tensor, "B K"], position: int) -> Float[Tensor, "B K D"]:
        """Embed K alternatives that all stand at one position."""
        return self._embed(tokens, self._places(position, 1))

    def _places(self, first: int, n: int) -> Tensor:
        """The sinusoids of n positions, out of a table of 64, 128, 256 ... of them."""
        weight = self.table.weight
        rows = max(64, 1 << (first + n - 1).bit_length())
        return _table(rows, weight.shape[1], weight.device, weight.dtype)[first : first + n]

    def _embed(self, tokens: Tensor, places: Tensor) -> Tensor:
        embedded = F.embedding(tokens, self.table.weight) * self.scale + places
        return drop(embedded, self.dropout, self.training)
