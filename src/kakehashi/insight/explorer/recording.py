"""What a search keeps at every step: seen from the model, which is told all of it anyway."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from kakehashi.models.interface import AttentionMaps, Encoded, TranslationModel
from kakehashi.symbols import BOS, EOS


@dataclass(frozen=True)
class Alive:
    """A hypothesis that goes on after a step."""

    ids: tuple[int, ...]
    """Its pieces, without BOS."""
    parent: int
    """Its place, before the step, among those that were alive then."""
    log_probability: float
    """Sum of the model's natural log probabilities of the pieces."""


class Recorded(TranslationModel[Any]):
    """A model that remembers what a search of one sentence asks it, and is otherwise the same.

    A search tells its model which hypotheses it goes on with (``select``) and which pieces they
    chose (``step``). ``beam`` has them after each step, the first with those of one piece.
    Hypotheses that have ended are not among them.
    """

    def __init__(self, model: TranslationModel[Any]) -> None:
        super().__init__()
        self.model = model
        self.config = model.config
        self.vocab_size = model.vocab_size
        self.beam: list[list[Alive]] = []
        self._slots: list[Alive | None] = [Alive((), 0, 0.0)]
        self._rows: list[int] = [0]
        self._log_softmax: Tensor | None = None

    def encode(self, source: Int[Tensor, "B M"], allowed: Bool[Tensor, "B M"]) -> Encoded:
        """As the model does."""
        return self.model.encode(source, allowed)

    def features(
        self, source: Int[Tensor, "B M"], allowed: Bool[Tensor, "B M"], target: Int[Tensor, "B N"]
    ) -> Float[Tensor, "B N D"]:
        """As the model has them."""
        return self.model.features(source, allowed, target)

    def attending_features(
        self, source: Int[Tensor, "B M"], allowed: Bool[Tensor, "B M"], target: Int[Tensor, "B N"]
    ) -> tuple[Float[Tensor, "B N D"], list[Float[Tensor, "B H N M"]]]:
        """As the model has them."""
        return self.model.attending_features(source, allowed, target)

    def spoken(self) -> None:
        """All pieces: what is recorded is looked up by a piece's own number."""

    def start(
        self, encoded: Encoded, hypotheses: int = 1, pieces: Int[Tensor, " S"] | None = None
    ) -> Any:
        """The model's state before the first step."""
        return self.model.start(encoded, hypotheses, pieces)

    def step(self, tokens: Int[Tensor, "B K"], state: Any) -> tuple[Float[Tensor, "B K V"], Any]:
        """The model's step."""
        self._record(tokens)
        logits, after = self.model.step(tokens, state)
        self._log_softmax = logits[0].log_softmax(-1, dtype=torch.float32)
        return logits, after

    def attending_step(
        self, tokens: Int[Tensor, "B K"], state: Any
    ) -> tuple[Float[Tensor, "B K V"], Any, Float[Tensor, "B K M"]]:
        """The model's step, and how it attends."""
        self._record(tokens)
        logits, after, attention = self.model.attending_step(tokens, state)
        self._log_softmax = logits[0].log_softmax(-1, dtype=torch.float32)
        return logits, after, attention

    def select(
        self,
        state: Any,
        rows: Int[Tensor, "b k"],
        sentences: Int[Tensor, " b"] | None = None,
    ) -> Any:
        """The model's rearrangement."""
        self._rows = rows[0].tolist()
        return self.model.select(state, rows, sentences)

    def attention_maps(
        self, source: Int[Tensor, "B M"], allowed: Bool[Tensor, "B M"], target: Int[Tensor, "B N"]
    ) -> AttentionMaps:
        """As the model has them."""
        return self.model.attention_maps(source, allowed, target)

    def _record(self, tokens: Int[Tensor, "B K"]) -> None:
        if self._log_softmax is None:  # the first step reads BOS
            assert tokens.flatten().tolist() == [BOS]
            return
        places = {at: n for n, at in enumerate(i for i, s in enumerate(self._slots) if s)}
        slots: list[Alive | None] = []
        for row, token in zip(self._rows, tokens[0].tolist(), strict=True):
            parent = self._slots[row]
            if parent is None or token == EOS:
                slots.append(None)
            else:
                step = float(self._log_softmax[row, token])
                total = parent.log_probability + step
                slots.append(Alive((*parent.ids, token), places[row], total))
        self._slots, self._rows = slots, list(range(len(slots)))
        self.beam.append([slot for slot in slots if slot])
