"""From decoder features to the vocabulary."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

SILENT = -30.0
"""Logit offset of a silenced piece: it divides the odds of saying it by 1e13. Finite, so
that a reference that holds such a piece after all has a loss."""


class VocabularyProjection(nn.Linear):
    """``W h + silence``, with W [V D] learned and silence [V] a constant of the training text.

    A joint vocabulary holds many pieces that only the source language uses. Silenced, they need no
    place in the softmax of training (which is a good part of a small model's work) and are never
    generated, while the softmax over all V gives the same probabilities to all others (to 1e-12,
    where their own logits are no higher).
    """

    silence: Float[Tensor, " V"]

    def __init__(self, d_model: int, vocab_size: int) -> None:
        super().__init__(d_model, vocab_size, bias=False)
        self.register_buffer("silence", torch.zeros(vocab_size))

    def forward(self, input: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:  # noqa: A002
        """The logits."""
        return F.linear(input, self.weight, self.silence)

    def offsets(self) -> Float[Tensor, " V"] | None:
        """``silence``, or None where it is all zero and need not be added to every logit."""
        return self.silence if bool(self.silence.any()) else None

    def restrict(self, spoken: Int[Tensor, " S"]) -> None:
        """Silence every piece but these."""
        self.silence.fill_(SILENT)
        self.silence[spoken] = 0.0
