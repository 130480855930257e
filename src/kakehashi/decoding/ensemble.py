"""Several models that share a vocabulary as one: the mean of what they expect.

Shapes: B sentences, M source pieces, N target pieces, K hypotheses, V vocabulary,
S pieces that a search asks for.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from kakehashi.models.alignment import AlignmentChoice
from kakehashi.models.interface import (
    AttentionMaps,
    Encoded,
    TranslationModel,
    chosen_weights,
)


@dataclass(frozen=True)
class EnsembleEncoded(Encoded):
    """What each model makes of the same sentences; the annotations of its own are the first's."""

    parts: tuple[Encoded, ...]


class Ensemble(TranslationModel[list[Any]]):
    """The next piece's probability is the mean of the models' probabilities of it.

    Every search runs on it as on a model of its own, and the models may be of different kinds.
    Nothing of them is copied. There is no vector from which the mean follows by one projection, so
    ``features`` and ``output`` are not to be had: it cannot be trained.

    Args:
        models: one or more, with the same vocabulary (that the pieces are the same too, is for the
            caller to see).

    Raises:
        ValueError: when there is none, or the sizes of their vocabularies differ.
    """

    def __init__(self, models: Sequence[TranslationModel[Any]]) -> None:
        super().__init__()
        if len({model.vocab_size for model in models}) != 1:
            sizes = ", ".join(f"{model.vocab_size:,}" for model in models) or "none"
            raise ValueError(f"an ensemble needs models of one vocabulary; their sizes are {sizes}")
        self.models = nn.ModuleList(models)
        self.members = tuple(models)
        self.config = tuple(model.config for model in models)
        self.vocab_size = models[0].vocab_size
        self.alignment = AlignmentChoice()

    def encode(self, source: Int[Tensor, "B M"], allowed: Bool[Tensor, "B M"]) -> EnsembleEncoded:
        """Annotate the source tokens, by each model."""
        parts = tuple(model.encode(source, allowed) for model in self.members)
        return EnsembleEncoded(parts[0].annotations, allowed, parts)

    def features(
        self, source: Int[Tensor, "B M"], allowed: Bool[Tensor, "B M"], target: Int[Tensor, "B N"]
    ) -> Float[Tensor, "B N D"]:
        """An ensemble has none.

        Raises:
            TypeError: always.
        """
        raise TypeError("an ensemble has no features: take those of one of its models")

    def attending_features(
        self, source: Int[Tensor, "B M"], allowed: Bool[Tensor, "B M"], target: Int[Tensor, "B N"]
    ) -> tuple[Float[Tensor, "B N D"], list[Float[Tensor, "B H N M"]]]:
        """An ensemble has none.

        Raises:
            TypeError: always.
        """
        raise TypeError("an ensemble has no features: take those of one of its models")

    def forward(
        self, source: Int[Tensor, "B M"], allowed: Bool[Tensor, "B M"], target: Int[Tensor, "B N"]
    ) -> Float[Tensor, "B N V"]:
        """Log of the mean probability of the token after each target token, teacher-forced."""
        return _mean([model(source, allowed, target) for model in self.members])

    def spoken(self) -> Int[Tensor, " S"] | None:
        """The pieces that any of the models ever says."""
        each = [model.spoken() for model in self.members]
        some = [pieces for pieces in each if pieces is not None]
        return torch.cat(some).unique() if len(some) == len(each) else None

    def start(
        self, encoded: Encoded, hypotheses: int = 1, pieces: Int[Tensor, " S"] | None = None
    ) -> list[Any]:
        """The models' states before the first step."""
        assert isinstance(encoded, EnsembleEncoded)
        parts = zip(self.members, encoded.parts, strict=True)
        return [model.start(part, hypotheses, pieces) for model, part in parts]

    def step(
        self, tokens: Int[Tensor, "B K"], state: list[Any]
    ) -> tuple[Float[Tensor, "B K S"], list[Any]]:
        """Log of the mean probability of each next token, and the states after it."""
        stepped = [model.step(tokens, own) for model, own in zip(self.members, state, strict=True)]
        return _mean([logits for logits, _ in stepped]), [after for _, after in stepped]

    def attending_step(
        self, tokens: Int[Tensor, "B K"], state: list[Any]
    ) -> tuple[Float[Tensor, "B K S"], list[Any], Float[Tensor, "B K M"]]:
        """``step``, and the mean of how the models attend."""
        stepped = [
            model.attending_step(tokens, own)
            for model, own in zip(self.members, state, strict=True)
        ]
        attention = torch.stack([weights for *_, weights in stepped]).mean(dim=0)
        logits = _mean([logits for logits, *_ in stepped])
        return logits, [after for _, after, _ in stepped], attention

    def select(
        self,
        state: list[Any],
        rows: Int[Tensor, "b k"],
        sentences: Int[Tensor, " b"] | None = None,
    ) -> list[Any]:
        """Rearrange the models' states."""
        parts = zip(self.members, state, strict=True)
        return [model.select(own, rows, sentences) for model, own in parts]

    def attention_maps(
        self, source: Int[Tensor, "B M"], allowed: Bool[Tensor, "B M"], target: Int[Tensor, "B N"]
    ) -> AttentionMaps:
        """One cross-attention map of one head: the mean of what ``attending_step`` sees.

        Layers and heads of different models have nothing to do with each other, so there are no
        others.
        """
        cross = [model.attention_maps(source, allowed, target).cross for model in self.members]
        aligning = [
            chosen_weights(maps, model.alignment)
            for maps, model in zip(cross, self.members, strict=True)
        ]
        return AttentionMaps([torch.stack(aligning).mean(dim=0).unsqueeze(1)])


def _mean(logits: list[Float[Tensor, "*B V"]]) -> Float[Tensor, "*B V"]:
    """Log of the mean of the softmaxes."""
    each = torch.stack([part.log_softmax(dim=-1, dtype=torch.float32) for part in logits])
    return each.logsumexp(dim=0) - math.log(len(logits))
