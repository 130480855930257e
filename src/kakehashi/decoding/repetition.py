"""Keeping a translation from saying the same again. Shapes as in ``decoding.competition``."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kakehashi.symbols import PAD


@dataclass(frozen=True)
class NoRepeat:
    """No n pieces in a row twice (Paulus et al., 2018, have it for trigrams)."""

    n: int

    def adjust(
        self,
        scores: Float[Tensor, "B R V"],
        ids: Int[Tensor, "B R L"],
        sentence: Int[Tensor, " B"],
    ) -> None:
        """Bar every piece that came after the last n - 1 pieces before."""
        del sentence
        length = ids.shape[-1]
        if length < self.n:
            return
        runs = ids.unfold(-1, self.n, 1)
        last = ids[..., length - self.n + 1 :].unsqueeze(-2)
        said = (runs[..., :-1] == last).all(dim=-1)
        # PAD, which is barred anyway, stands for nothing.
        scores.scatter_(-1, runs[..., -1].masked_fill(~said, PAD), -torch.inf)


def penalise_repetition(
    logits: Float[Tensor, "B R V"], ids: Int[Tensor, "B R L"], penalty: float
) -> Float[Tensor, "B R V"]:
    """Logits of pieces that were said, divided by the penalty; negative ones times the penalty.

    Keskar et al. (2019), CTRL, section 4.1, where logits are taken for positive: a division alone
    would favour what has a negative one.
    """
    said = logits.gather(-1, ids)
    return logits.scatter(-1, ids, torch.where(said > 0, said / penalty, said * penalty))
