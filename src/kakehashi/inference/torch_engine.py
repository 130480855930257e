"""The engine that runs every model of the project, with torch."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from kakehashi.decoding.config import DecodingConfig
from kakehashi.decoding.ensemble import Ensemble
from kakehashi.decoding.hypothesis import Hypothesis
from kakehashi.decoding.methods import BEAM, Method, Sampling, sentence_key
from kakehashi.decoding.rules import Rules
from kakehashi.decoding.search import search
from kakehashi.inference.alignment import shifted
from kakehashi.inference.engine import Followed, R, Row, T
from kakehashi.inference.side_by_side import side_by_side
from kakehashi.models.alignment import AlignmentChoice
from kakehashi.models.interface import AttentionMaps, TranslationModel, chosen_weights
from kakehashi.symbols import BOS, EOS, PAD

SIDE_BY_SIDE = 8
"""Most batches at a time. What Python does between operations only one thread can do at once."""


class TorchEngine:
    """Searches with a model, in evaluation mode, wherever its weights are."""

    name = "torch"

    def __init__(self, model: TranslationModel[Any]) -> None:
        self.model = model
        self.device = next(model.parameters()).device

    @property
    def together(self) -> bool:
        """Whether several models run as one."""
        return isinstance(self.model, Ensemble)

    def each(self, work: Callable[[T], R], batches: Sequence[T]) -> Iterator[R]:
        """See ``Engine``: on a CPU a batch for each of torch's threads, up to ``SIDE_BY_SIDE``.

        A step of a search is many small operations. A second thread makes few of them faster, and
        all of a second batch. Where there are fewer batches than threads each has several.
        """
        together = torch.get_num_threads()
        threads = min(len(batches), together // -(-together // SIDE_BY_SIDE))
        if self.device.type != "cpu" or threads < 2:
            return map(work, batches)

        def begin() -> None:
            torch.get_num_threads()  # lest what counts for all is set at the first use
            torch.set_num_threads(together // threads)

        # The number counts for the thread that sets it, and for all that torch meets later.
        return side_by_side(work, batches, threads, begin, partial(torch.set_num_threads, together))

    @torch.inference_mode()
    def search(
        self,
        rows: Sequence[Row],
        *,
        config: DecodingConfig,
        method: Method = BEAM,
        n_best: int = 1,
        rules: Sequence[Rules] | None = None,
        allow_unknown: bool = False,
    ) -> list[list[Hypothesis]]:
        """See ``Engine``; a sentence's samples are decided by the seed and its pieces."""
        source, allowed = source_tensors(rows, self.device)
        return search(
            self.model,
            self.model.encode(source, allowed),
            config=config,
            method=method,
            n_best=n_best,
            rules=rules,
            keys=[sentence_key(row) for row in rows] if isinstance(method, Sampling) else None,
            allow_unknown=allow_unknown,
        )

    @torch.inference_mode()
    def follow(
        self, rows: Sequence[Row], targets: Sequence[Row], *, attending: bool = False
    ) -> list[Followed]:
        """See ``Engine``; attention is that of the model's ``alignment``, of several their mean."""
        source, allowed = source_tensors(rows, self.device)
        given, target = target_tensors(targets, self.device)
        labels = given.masked_fill(given == PAD, EOS)
        logits, looks = self._teach(source, allowed, target, attending)
        log_softmax = logits.log_softmax(-1, dtype=torch.float32)
        log_probabilities = log_softmax.gather(2, labels.unsqueeze(2))[..., 0].tolist()
        found = []
        for place, (row, pieces) in enumerate(zip(rows, targets, strict=True)):
            steps, columns = len(pieces) + 1, len(row) + 1
            looked = [
                shifted(weights[place, :steps, :columns], choice.shift) for weights, choice in looks
            ]
            attention = np.mean(looked, axis=0) if looked else None
            found.append(Followed(tuple(log_probabilities[place][:steps]), attention))
        return found

    def _teach(
        self, source: Tensor, allowed: Tensor, target: Tensor, attending: bool
    ) -> tuple[Tensor, list[tuple[npt.NDArray[np.float32], AlignmentChoice]]]:
        """Logits [B N V], and if asked for each model's chosen attention [B N M], by steps."""
        if not attending:
            return self.model(source, allowed, target), []
        if isinstance(self.model, Ensemble):
            looks = [
                (model.attention_maps(source, allowed, target).cross, model.alignment)
                for model in self.model.members
            ]
            logits = self.model(source, allowed, target)
        else:
            features, cross = self.model.attending_features(source, allowed, target)
            looks, logits = [(cross, self.model.alignment)], self.model.output(features)
        return logits, [
            (chosen_weights(cross, choice).float().cpu().numpy(), choice) for cross, choice in looks
        ]

    @torch.inference_mode()
    def cross(
        self, rows: Sequence[Row], targets: Sequence[Row]
    ) -> list[list[npt.NDArray[np.float32]]]:
        """The cross-attention of each pair, of each layer: [H, N + 1, M + 1], by steps."""
        source, allowed = source_tensors(rows, self.device)
        _, target = target_tensors(targets, self.device)
        maps = self.model.attention_maps(source, allowed, target).cross
        layers = [weights.float().cpu().numpy() for weights in maps]
        return [
            [weights[place, :, : len(pieces) + 1, : len(row) + 1] for weights in layers]
            for place, (row, pieces) in enumerate(zip(rows, targets, strict=True))
        ]

    def maps(self, row: Row, target: Row) -> AttentionMaps:
        """Every attention weight while a sentence is read and a translation of it followed."""
        source, allowed = source_tensors([row], self.device)
        with torch.inference_mode():
            return self.model.attention_maps(
                source, allowed, torch.tensor([[BOS, *target]], device=self.device)
            )


def target_tensors(
    targets: Sequence[Row], device: torch.device
) -> tuple[Int[Tensor, "B N"], Int[Tensor, "B N"]]:
    """Pieces without EOS as what a decoder is to say, EOS at its end, and what it reads for it."""
    given, _ = source_tensors(targets, device)
    return given, torch.cat([torch.full_like(given[:, :1], BOS), given[:, :-1]], dim=1)


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
