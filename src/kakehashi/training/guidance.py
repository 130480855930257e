"""Showing one attention head where to look, while it cannot know yet.

Early in training the decoder's attention is nearly uniform, and until it is not, little else can be
learnt. The lexicon's counts give a rough alignment of every training pair at once; one head of each
cross-attention is pulled towards it, ever more weakly, and then left alone (guided alignment, Chen
et al., 2016, with IBM Model 1 in the place of an aligner).

Shapes: B pairs, M source pieces, N target pieces, H heads, U pairs of pieces in the lexicon.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from kakehashi.training.lexicon import Lexicon, tie_weights

SHARPNESS = 4.0
"""How fast a source piece counts less the further its relative position is from the target's."""


class Guide:
    """The alignment that a head is shown, and by how much it is pulled towards it."""

    def __init__(self, lexicon: Lexicon, vocab_size: int, strength: float, updates: int) -> None:
        """``strength`` falls from its value to 0 over the first ``updates`` updates."""
        self.vocab_size = vocab_size
        self.strength, self.updates = strength, updates
        self.keys = torch.from_numpy(lexicon.source * vocab_size + lexicon.target)
        self.ties = tie_weights(lexicon, vocab_size).float()

    def weight(self, update: int) -> float:
        """The factor of the loss after so many updates; it never depends on the run's length."""
        return self.strength * max(0.0, 1.0 - update / self.updates)

    def alignment(
        self,
        source: Int[Tensor, "B M"],
        target: Int[Tensor, "B N"],
        allowed: Bool[Tensor, "B M"],
        real: Bool[Tensor, "B N"],
    ) -> Float[Tensor, "B N M"]:
        """Where each target piece comes from: rows sum to 1, or to 0 where nothing is known."""
        if self.keys.device != source.device:
            self.keys, self.ties = self.keys.to(source.device), self.ties.to(source.device)
        wanted = source.unsqueeze(1) * self.vocab_size + target.unsqueeze(2)
        place = torch.searchsorted(self.keys, wanted).clamp_max(len(self.keys) - 1)
        tie = self.ties[place] * (self.keys[place] == wanted)
        distance = (_relative(real).unsqueeze(2) - _relative(allowed).unsqueeze(1)).abs()
        tie = tie * torch.exp(-SHARPNESS * distance)
        tie = tie * (real.unsqueeze(2) & allowed.unsqueeze(1))
        return tie / tie.sum(-1, keepdim=True).clamp_min(1e-9)

    def loss(
        self,
        cross: Sequence[Float[Tensor, "B H N M"]],
        source: Int[Tensor, "B M"],
        target: Int[Tensor, "B N"],
        allowed: Bool[Tensor, "B M"],
        real: Bool[Tensor, "B N"],
    ) -> Float[Tensor, ""]:
        """Cross-entropy of the first head of every layer, in nats a target piece, summed."""
        alignment = self.alignment(source, target, allowed, real)
        # inside the logarithm, so that a weight that has come to 0 has a gradient
        logs = sum((weights[:, 0] + 1e-6).log() for weights in cross)
        # a process may have been left without a pair: a loss of 0, not of 0 / 0
        return -(alignment * logs).sum() / real.sum().clamp_min(1)


def _relative(mask: Bool[Tensor, "B L"]) -> Float[Tensor, "B L"]:
    """The middle of each piece as a fraction of its sentence."""
    places = torch.arange(mask.shape[1], device=mask.device) + 0.5
    return places / mask.sum(1, keepdim=True)
