"""The part of the vocabulary that is said at all: training's softmax runs over nothing else."""

from typing import Any

from torch import Tensor

from kakehashi.models.interface import TranslationModel


class Spoken:
    """Pieces that the model's output does not silence, numbered anew."""

    def __init__(self, model: TranslationModel[Any]) -> None:
        said = model.output.silence == 0
        self.all = bool(said.all())
        self.pieces = said.nonzero().squeeze(1)
        self.places = said.cumsum(0) - 1

    def weight(self, model: TranslationModel[Any]) -> Tensor:
        """The projection's rows [S D] of the pieces that are said."""
        weight: Tensor = model.output.weight
        if self.all:
            return weight
        self.pieces = self.pieces.to(weight.device)
        return weight.index_select(0, self.pieces)

    def number(self, targets: Tensor) -> Tensor:
        """Where the target pieces stand among those rows."""
        if self.all:
            return targets
        self.places = self.places.to(targets.device)
        return self.places[targets]
