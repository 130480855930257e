"""The finished hypotheses of a batch: the best few of each sentence, kept as tensors."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from kakehashi.decoding.hypothesis import Hypothesis


@dataclass
class Finished:
    """S slots a sentence, best first; an empty slot has score -inf.

    B sentences, L the number of steps so far (a shorter hypothesis is padded at the end).
    """

    score: Float[Tensor, "B S"]
    log_probability: Float[Tensor, "B S"]
    length: Int[Tensor, "B S"]
    """Pieces, EOS included."""
    ids: Int[Tensor, "B S L"]
    number: Int[Tensor, " B"]
    """How many have finished, whether they are kept or not."""

    @classmethod
    def empty(cls, sentences: int, slots: int, device: torch.device) -> "Finished":
        """No hypothesis yet."""
        nothing = torch.full((sentences, slots), -torch.inf, device=device)
        zeros = torch.zeros((sentences, slots), dtype=torch.int64, device=device)
        ids = zeros.new_zeros(sentences, slots, 0)
        return cls(nothing, nothing.clone(), zeros, ids, zeros.new_zeros(sentences))

    def add(
        self,
        log_probability: Float[Tensor, "B K"],
        score: Float[Tensor, "B K"],
        ids: Int[Tensor, "B K L"],
        ended: Bool[Tensor, "B K"],
    ) -> None:
        """Take in the hypotheses that have ``ended`` at this step and keep the best S.

        Of equal scores the one that ended earlier stays ahead, then the lower row.
        """
        self.number = self.number + ended.sum(dim=1)
        length = ids.shape[-1]
        slots = self.score.shape[1]
        padding = length - self.ids.shape[-1]
        kept = torch.nn.functional.pad(self.ids, (0, padding))
        scores = torch.cat([self.score, score.masked_fill(~ended, -torch.inf)], dim=1)
        ordered, order = scores.sort(dim=1, descending=True, stable=True)
        order = order[:, :slots]
        lengths = torch.cat([self.length, torch.full_like(ids[..., 0], length)], dim=1)
        log_probabilities = torch.cat([self.log_probability, log_probability], dim=1)
        self.score = ordered[:, :slots]
        self.log_probability = log_probabilities.gather(1, order)
        self.length = lengths.gather(1, order)
        every = torch.cat([kept, ids], dim=1)
        self.ids = every.gather(1, order.unsqueeze(-1).expand(-1, -1, length))

    def keep(self, sentences: Int[Tensor, " b"]) -> None:
        """Drop every sentence but these."""
        self.score = self.score[sentences]
        self.log_probability = self.log_probability[sentences]
        self.length = self.length[sentences]
        self.ids = self.ids[sentences]
        self.number = self.number[sentences]

    def hypotheses(self, sentence: int) -> list[Hypothesis]:
        """What has been found for one sentence, best first; without the final EOS."""
        found = []
        for slot in range(self.score.shape[1]):
            score = float(self.score[sentence, slot])
            if score == -torch.inf:
                break
            pieces = int(self.length[sentence, slot]) - 1
            ids = tuple(self.ids[sentence, slot, :pieces].tolist())
            found.append(Hypothesis(ids, score, float(self.log_probability[sentence, slot]), True))
        return found
