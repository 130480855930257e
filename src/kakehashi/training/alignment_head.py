"""One head that learns to align words, from alignments that are given.

Guided alignment all through training (Garg et al., 2019, "Jointly Learning to Align and Translate
with Transformer Models"): one head of one cross-attention is kept to the alignments while the rest
of the model learns to translate. A Transformer's is read at the step whose input the target piece
is: that step knows the piece, while the one that writes it has to guess it. A recurrent decoder
attends before it reads, so there it is the step that writes.

Shapes: B pairs, M source pieces with EOS, N target pieces with EOS, H heads, T pairs of a corpus,
L links of all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from kakehashi.data.batching import Batch
from kakehashi.models.alignment import AlignmentChoice
from kakehashi.models.interface import TranslationModel, alignment_layer
from kakehashi.models.transformer import Transformer


@dataclass(frozen=True)
class PieceLinks:
    """Links of pieces, pair after pair: those of pair i are offsets[i]:offsets[i + 1]."""

    offsets: npt.NDArray[np.int64]
    """[T + 1]."""
    source: npt.NDArray[np.int32]
    """[L]: the place of the source piece in its sentence."""
    target: npt.NDArray[np.int32]
    """[L]: and of the target piece."""

    def alignment(self, batch: Batch) -> Float[Tensor, "B N M"]:
        """Where each target piece comes from: rows sum to 1, or to 0 where nothing is linked."""
        rows, columns = batch.target_output.shape[1], batch.source.shape[1]
        dense = np.zeros((len(batch.index), rows, columns), np.float32)
        for place, pair in enumerate(batch.index.tolist()):
            if pair >= 0:  # a row without a pair has no links
                links = slice(self.offsets[pair], self.offsets[pair + 1])
                dense[place, self.target[links], self.source[links]] = 1.0
        dense /= np.maximum(dense.sum(-1, keepdims=True), 1.0)
        return torch.from_numpy(dense).to(batch.source.device)


class AlignmentHead:
    """The pull of a head towards given alignments.

    Args:
        links: of the training text's pairs.
        choice: the head, and the step at which it is read.
        strength: factor of the loss, a cross-entropy in nats of each target piece that has links.
    """

    def __init__(self, links: PieceLinks, choice: AlignmentChoice, strength: float) -> None:
        assert choice.head is not None  # one head, not the mean of all
        self.links, self.choice, self.strength = links, choice, strength
        self.head = choice.head - 1

    def loss(self, cross: Sequence[Float[Tensor, "B H N M"]], batch: Batch) -> Float[Tensor, ""]:
        """Summed over target pieces; of the attention of all layers it needs that of one."""
        weights = cross[self.choice.layer - 1][:, self.head]
        alignment = self.links.alignment(batch)
        if self.choice.shift:
            # the last of a row is EOS, which no step reads
            weights, alignment = weights[:, 1:], alignment[:, :-1]
        # inside the logarithm, so that a weight that has come to 0 has a gradient
        return -self.strength * (alignment * (weights + 1e-6).log()).sum()


def taught_choice(model: TranslationModel[Any]) -> AlignmentChoice:
    """Which head learns to align: the last, as the first is the one that ``Guide`` pulls."""
    if isinstance(model, Transformer):
        layers, heads = model.config.decoder_layers, model.config.n_heads
        return AlignmentChoice(alignment_layer(layers) + 1, heads, shift=1)
    return AlignmentChoice(1, 1)
