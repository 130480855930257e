"""The mean of models along a run (checkpoint averaging: Junczys-Dowmunt et al., 2016)."""

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from kakehashi.errors import TrainingError
from kakehashi.training.snapshot import Snapshot, refuse_other_run


class Mean:
    """The mean of k checkpoints of one run, taken in one by one: two are in memory, never all.

    Each weight is ``w_1 - ((w_1 - w_1) + (w_1 - w_2) + ... + (w_1 - w_k)) / k``, worked out in
    float64 and then rounded to the type that it had. That is the mean, and of copies of one
    checkpoint it is that checkpoint bit for bit, for every k and every type: each difference is
    +0, so is their sum, and ``x - 0`` is x (for -0 too).
    """

    def __init__(self) -> None:
        self.count = 0
        self._first: Snapshot | None = None
        self._ties: dict[str, str] = {}
        self._short: dict[str, Tensor] = {}
        """The sum of those differences, of the weights that have a mean."""

    def add(self, snapshot: Snapshot) -> None:
        """Take in one more.

        Raises:
            TrainingError: when it is of another run than the first, or of another shape, naming
                the key and both values; then nothing has been taken in.
        """
        ties = tied_names(snapshot.weights)
        if self._first is None:
            copies = {name: weight.detach().clone() for name, weight in snapshot.weights.items()}
            self._first, self._ties = replace(snapshot, weights=copies), ties
            for name, weight in copies.items():
                if ties[name] == name and weight.is_floating_point():
                    self._short[name] = torch.zeros_like(weight, dtype=torch.float64)
        else:
            refuse_other_run(self._first, snapshot)
            _refuse_other_model(self._first, snapshot)
            if ties != self._ties:
                name = next(n for n in ties if ties[n] != self._ties[n])
                raise _different(self._first, snapshot, f"{name} is tied in one of them only")
            for name in self._short:
                here, there = self._first.weights[name], snapshot.weights[name]
                self._short[name] += here.double() - there.double()
        self.count += 1

    def weights(self) -> dict[str, Tensor]:
        """The mean, in the types of the checkpoints; tied weights share their memory.

        Raises:
            TrainingError: when nothing has been taken in.
        """
        if self._first is None:
            raise TrainingError("there are no checkpoints, and so no mean of them")
        mean: dict[str, Tensor] = {}
        for name, first in self._first.weights.items():
            if self._ties[name] != name:
                mean[name] = mean[self._ties[name]]
            elif name in self._short:
                mean[name] = (first.double() - self._short[name] / self.count).to(first.dtype)
            else:
                mean[name] = first.clone()
        return mean


def tied_names(weights: Mapping[str, Tensor]) -> dict[str, str]:
    """For each name the first name of the same memory: itself, unless the weight is tied."""
    first: dict[tuple[object, ...], str] = {}
    ties = {}
    for name, weight in weights.items():
        place = (weight.data_ptr(), weight.shape, weight.stride(), weight.dtype)
        ties[name] = first.setdefault(place, name) if weight.numel() else name
    return ties


def _refuse_other_model(first: Snapshot, other: Snapshot) -> None:
    for name in [*first.weights, *other.weights]:
        if name not in other.weights or name not in first.weights:
            lacking = other if name in first.weights else first
            raise _different(first, other, f"{lacking.path} has no {name}")
        here, there = first.weights[name], other.weights[name]
        if here.shape != there.shape:
            shapes = f"{list(here.shape)} in the first and {list(there.shape)} in the second"
            raise _different(first, other, f"{name} has shape {shapes}")
        if here.dtype != there.dtype:
            types = f"{here.dtype} in the first and {there.dtype} in the second"
            raise _different(first, other, f"{name} is {types}")
        if not here.is_floating_point() and not torch.equal(here, there):
            raise _different(
                first, other, f"{name} is not the same, and whole numbers have no mean"
            )


def _different(first: Snapshot, other: Snapshot, what: str) -> TrainingError:
    return TrainingError(
        f"{first.path} and {other.path} hold different models, which have no mean: {what}"
    )
