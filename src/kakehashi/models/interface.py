"""What a translation model is to the rooms above: an encoder, and a decoder that can take steps.

Shapes: B sentences, M source tokens, N target tokens, K hypotheses a sentence, H heads,
D model width, V vocabulary.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from kakehashi.layers.projection import VocabularyProjection
from kakehashi.models.alignment import AlignmentChoice


@dataclass(frozen=True)
class Encoded:
    """A batch of source sentences after the encoder: what the decoder's cross-attention reads."""

    annotations: Float[Tensor, "B M D"]
    allowed: Bool[Tensor, "B M"]
    """True where a real token stands, False on padding."""


@dataclass(frozen=True)
class AttentionMaps:
    """Attention weights of a teacher-forced pass, layer by layer; rows sum to 1 over the last axis.

    ``encoder`` [B H M M] and ``decoder`` [B H N N] are self-attention, ``cross`` [B H N M] is the
    decoder's look at the source. Row n is the step whose *input* is target token n.
    """

    cross: list[Float[Tensor, "B H N M"]]
    encoder: list[Float[Tensor, "B H M M"]] = field(default_factory=list)
    decoder: list[Float[Tensor, "B H N N"]] = field(default_factory=list)


@dataclass(frozen=True)
class Head:
    """One head of a model's attention, and where what it reads goes on into the model."""

    attention: str
    """``encoder`` or ``decoder`` (self-attention), or ``cross``."""
    layer: int
    """From 0."""
    number: int
    """From 0, within the layer."""
    inputs: tuple[tuple[nn.Linear, slice], ...]
    """The linear maps that take its context, each with the columns that do. Nothing else does: with
    these columns at 0 the model goes on as if the context were 0."""


StateT = TypeVar("StateT")
"""A decoder's state between two steps: known to the model that made it, opaque to everyone else."""


class TranslationModel(nn.Module, ABC, Generic[StateT]):
    """An encoder-decoder with a vocabulary projection on top.

    The decoder can run two ways with the same result: over a whole target at once (``forward``,
    teacher-forced, for training) and token by token (``start``, ``step``, ``select``, for search).
    The K hypotheses of a sentence are K queries against one memory: nothing of the source side is
    ever copied per hypothesis.

    Padding stands at the end: ``allowed`` [B M] is True on a sentence's tokens (one or more) and
    False on all places after them. Target rows start at BOS; what follows their end is ignored.
    """

    config: Any
    """The dataclass the model was built from; with ``vocab_size`` it rebuilds the model."""
    vocab_size: int
    output: VocabularyProjection
    """Projection from decoder features to the vocabulary, weight [V D]."""
    alignment: AlignmentChoice
    """Which attention is read as a word alignment: what was measured to be best, if anything was;
    until then see ``alignment_layer``."""

    @abstractmethod
    def encode(self, source: Int[Tensor, "B M"], allowed: Bool[Tensor, "B M"]) -> Encoded:
        """Annotate the source tokens; ``allowed`` is True on real tokens."""

    @abstractmethod
    def features(
        self,
        source: Int[Tensor, "B M"],
        allowed: Bool[Tensor, "B M"],
        target: Int[Tensor, "B N"],
    ) -> Float[Tensor, "B N D"]:
        """Decoder outputs before the vocabulary projection, given the whole target (from BOS)."""

    @abstractmethod
    def attending_features(
        self,
        source: Int[Tensor, "B M"],
        allowed: Bool[Tensor, "B M"],
        target: Int[Tensor, "B N"],
    ) -> tuple[Float[Tensor, "B N D"], list[Float[Tensor, "B H N M"]]]:
        """``features``, and each decoder layer's cross-attention weights, with gradients."""

    def forward(
        self,
        source: Int[Tensor, "B M"],
        allowed: Bool[Tensor, "B M"],
        target: Int[Tensor, "B N"],
    ) -> Float[Tensor, "B N V"]:
        """Logits of the token after each target token, teacher-forced."""
        logits: Tensor = self.output(self.features(source, allowed, target))
        return logits

    def spoken(self) -> Int[Tensor, " S"] | None:
        """The pieces that are ever said, in ascending order, EOS among them; None: all may be.

        All others together have less probability than float32 can tell from none.
        """
        return self.output.spoken()

    @abstractmethod
    def start(
        self, encoded: Encoded, hypotheses: int = 1, pieces: Int[Tensor, " S"] | None = None
    ) -> StateT:
        """State before the first step, with ``hypotheses`` equal rows for each sentence.

        Each step will give logits of ``pieces``, in their order, or of all V where that is None.
        """

    @abstractmethod
    def step(
        self, tokens: Int[Tensor, "B K"], state: StateT
    ) -> tuple[Float[Tensor, "B K S"], StateT]:
        """Feed each hypothesis its last token; logits of the next one, and the state after it.

        The state that was handed in stays as it is: one may go on from it again.
        """

    @abstractmethod
    def attending_step(
        self, tokens: Int[Tensor, "B K"], state: StateT
    ) -> tuple[Float[Tensor, "B K S"], StateT, Float[Tensor, "B K M"]]:
        """``step``, and how each hypothesis attends to the source as it reads its last token.

        One distribution over the source, that of the layer and the head (or the mean of all) which
        ``alignment`` names.
        """

    @abstractmethod
    def select(
        self,
        state: StateT,
        rows: Int[Tensor, "b k"],
        sentences: Int[Tensor, " b"] | None = None,
    ) -> StateT:
        """Rearrange a state.

        ``rows[i, j]`` is the flat index (sentence * K + hypothesis) of the old hypothesis that the
        new hypothesis j of sentence i continues; the number of hypotheses may change.
        ``sentences`` are the old indices of the sentences that are kept; None keeps all in place,
        and then the source side is not touched at all.
        """

    @abstractmethod
    def attention_maps(
        self,
        source: Int[Tensor, "B M"],
        allowed: Bool[Tensor, "B M"],
        target: Int[Tensor, "B N"],
    ) -> AttentionMaps:
        """Every attention distribution of the teacher-forced pass (no dropout, no gradient)."""

    def heads(self) -> list[Head]:
        """Every head, layer by layer; none where they are those of other models (an ensemble)."""
        return []


def alignment_layer(layers: int) -> int:
    """Which of the decoder's layers (from 0) attends most like a word alignment.

    The last but one (Garg et al., 2019, "Jointly Learning to Align and Translate with Transformer
    Models"), and the last where there are no more than two.
    """
    return layers - 2 if layers > 2 else layers - 1


def chosen_weights(
    cross: Sequence[Float[Tensor, "B H N M"]], choice: AlignmentChoice
) -> Float[Tensor, "B N M"]:
    """The chosen one of all layers' cross-attention. Row n is a step: nothing is shifted."""
    return chosen_head(cross[choice.layer - 1], choice)


def chosen_head(
    weights: Float[Tensor, "B H N M"], choice: AlignmentChoice
) -> Float[Tensor, "B N M"]:
    """The chosen head of a layer, or the mean of all."""
    return weights.mean(dim=1) if choice.head is None else weights[:, choice.head - 1]


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """No dropout and no gradients inside; afterwards each module is in the mode it was in."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in modes:
            module.training = training
