"""Token embeddings with sinusoidal positions."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from kakehashi.attention.dropout import Dropout


def sinusoids(n: int, d_model: int, device: torch.device | None = None) -> Float[Tensor, "N D"]:
    """Positions 0 to n-1 (Vaswani et al., 2017, section 3.5), all sines before all cosines.

    Column j < D/2 is sin(pos / 10000^(2j/D)), column D/2 + j the cosine of the same angle: the
    half-split order that Marian, Hugging Face and CTranslate2 use.
    """
    position = torch.arange(n, dtype=torch.float64, device=device)
    frequency = 10000.0 ** (
        -2.0 * torch.arange(d_model // 2, dtype=torch.float64, device=device) / d_model
    )
    angle = position[:, None] * frequency
    return torch.cat([angle.sin(), angle.cos()], dim=-1).float()


class PositionalEmbedding(nn.Module):
    """``dropout(E[token] sqrt(d_model) + sinusoid[position])``; the table may be shared."""

    def __init__(self, table: nn.Embedding, dropout: float) -> None:
        super().__init__()
        self.table = table
        self.dropout = Dropout(dropout)
        self.scale = math.sqrt(table.embedding_dim)
        self.positions: Tensor
        # Not persistent: computed, not learned; grows with the longest sequence seen.
        self.register_buffer("positions", sinusoids(64, table.embedding_dim), persistent=False)

    def forward(self, tokens: Int[Tensor, "B N"], offset: int = 0) -> Float[Tensor, "B N D"]:
        """Embed tokens that stand at positions ``offset`` and after."""
        n = tokens.shape[1]
        places = self.places(offset + n)[offset : offset + n]
        return self._embed(tokens, places)

    def at(self, tokens: Int[Tensor, "B K"], position: int) -> Float[Tensor, "B K D"]:
        """Embed K alternatives that all stand at one position."""
        return self._embed(tokens, self.places(position + 1)[position])

    def places(self, n: int) -> Float[Tensor, "m D"]:
        """The sinusoids of at least n positions."""
        if n > self.positions.shape[0]:
            width = self.positions.shape[1]
            table = sinusoids(max(n, 2 * self.positions.shape[0]), width, self.positions.device)
            self.positions = table.to(self.positions.dtype)
        return self.positions

    def _embed(self, tokens: Tensor, places: Tensor) -> Tensor:
        embedded: Tensor = self.dropout(
            F.embedding(tokens, self.table.weight) * self.scale + places
        )
        return embedded
