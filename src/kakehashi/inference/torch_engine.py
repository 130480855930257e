"""The engine that runs every model of the project, with torch."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from kakehashi.decoding.beam import beam_search
from kakehashi.decoding.config import DecodingConfig
from kakehashi.decoding.greedy import greedy_search
from kakehashi.decoding.hypothesis import Hypothesis, max_lengths
from kakehashi.inference.engine import Followed, Row
from kakehashi.models.interface import AttentionMaps, TranslationModel
from kakehashi.symbols import BOS, EOS, PAD


class TorchEngine:
    """Searches with a model, in evaluation mode, wherever its weights are."""

    name = "torch"

    def __init__(self, model: TranslationModel[Any]) -> None:
        self.model = model
        self.device = next(model.parameters()).device

    @torch.inference_mode()
    def search(
        self, rows: Sequence[Row], config: DecodingConfig, n_best: int
    ) -> list[list[Hypothesis]]:
        """See ``Engine``."""
        source, allowed = source_tensors(rows, self.device)
        limits = max_lengths(allowed, config)
        encoded = self.model.encode(source, allowed)
        if config.beam == 1:
            return greedy_search(
                self.model, encoded, max_lengths=limits, length_penalty=config.length_penalty
            )
        return beam_search(
            self.model,
            encoded,
            beam=config.beam,
            max_lengths=limits,
            length_penalty=config.length_penalty,
            n_best=n_best,
        )

    @torch.inference_mode()
    def follow(
        self, rows: Sequence[Row], targets: Sequence[Row], *, attending: bool = False
    ) -> list[Followed]:
        """See ``Engine``; attention is that of ``alignment_layer``."""
        source, allowed = source_tensors(rows, self.device)
        given, _ = source_tensors(targets, self.device)
        labels = given.masked_fill(given == PAD, EOS)
        target = torch.cat([torch.full_like(given[:, :1], BOS), given[:, :-1]], dim=1)
        if attending:
            features, cross = self.model.attending_features(source, allowed, target)
            attention = cross[alignment_layer(len(cross))].mean(1).float().cpu().numpy()
        else:
            features, attention = self.model.features(source, allowed, target), None
        log_softmax = self.model.output(features).log_softmax(-1, dtype=torch.float32)
        log_probabilities = log_softmax.gather(2, labels.unsqueeze(2))[..., 0].tolist()
        found = []
        for place, (row, pieces) in enumerate(zip(rows, targets, strict=True)):
            steps = len(pieces) + 1
            looked = None if attention is None else attention[place, :steps, : len(row) + 1]
            found.append(Followed(tuple(log_probabilities[place][:steps]), looked))
        return found

    def maps(self, row: Row, target: Row) -> AttentionMaps:
        """Every attention weight while a sentence is read and a translation of it followed."""
        source, allowed = source_tensors([row], self.device)
        with torch.inference_mode():
            return self.model.attention_maps(
                source, allowed, torch.tensor([[BOS, *target]], device=self.device)
            )


def alignment_layer(layers: int) -> int:
    """The decoder layer (from 0) whose cross-attention aligns best.

    The last but one in deep Transformers, the last where there are no more than two.
    """
    return layers - 2 if layers > 2 else layers - 1


def source_tensors(
    rows: Sequence[Row], device: torch.device
) -> tuple[Int[Tensor, "B M"], Bool[Tensor, "B M"]]:
    """Pieces without EOS as the padded source of a model, and True where a piece or EOS stands."""
    lengths = torch.tensor([len(row) + 1 for row in rows])
    source = torch.full((len(rows), int(lengths.max())), PAD)
    for place, row in zip(source, rows, strict=True):
        place[: len(row) + 1] = torch.tensor([*row, EOS])
    allowed = torch.arange(source.shape[1]) < lengths.unsqueeze(1)
    return source.to(device), allowed.to(device)
