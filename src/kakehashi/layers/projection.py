"""From decoder features to the vocabulary."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from kakehashi.symbols import EOS

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

    def spoken(self) -> Int[Tensor, " S"] | None:
        """The pieces that are not silenced, EOS always among them, in ascending order.

        None where none is silenced.
        """
        spoken = self.silence > SILENT
        spoken[EOS] = True
        return None if bool(spoken.all()) else spoken.nonzero().flatten()

    def of(
        self, pieces: Int[Tensor, " S"] | None
    ) -> tuple[Float[Tensor, "S D"], Float[Tensor, " S"] | None]:
        """Weight and offsets of the logits of some pieces, or of all, for ``F.linear``.

        The offsets are None where they are all zero and need not be added to every logit.
        """
        weight, offsets = self.weight, self.silence
        if pieces is not None:
            weight, offsets = weight.index_select(0, pieces), offsets.index_select(0, pieces)
        return weight, offsets if bool(offsets.any()) else None

    def restrict(self, spoken: Int[Tensor, " S"]) -> None:
        """Silence every piece but these."""
        self.silence.fill_(SILENT)
        self.silence[spoken] = 0.0
