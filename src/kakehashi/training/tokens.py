"""The sums of an update over its batches, and the gradient of their mean over all target tokens.

A mean of the batches' means would weigh a token by how few others its batch holds. What an update
minimises is the sum of the losses of all real target tokens, of all its batches and of all
processes, divided by the number of these tokens: however the pairs are cut into batches, dealt out
to processes or split into parts, it is the same number. The count is known only when the last batch
is through, so batches give gradients of sums, and the update's gradient is scaled once at its end.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn

from kakehashi.data.batching import Batch
from kakehashi.training.sharding import whole

NOMINAL = 1024.0
"""What sums are divided by before they are differentiated, so that half precision can hold their
gradients; a power of two rounds nothing, and it is multiplied back with the count."""


class Sums(NamedTuple):
    """Over the real target tokens of some batches."""

    minimised: float
    nll: float
    targets: float
    """Target tokens."""
    sources: float


@dataclass
class Window:
    """The batches of the update that is being made."""

    batches: list[Batch] = field(default_factory=list)
    sums: list[Tensor] = field(default_factory=list)
    """Of each batch, on the device: minimised loss, nll, target tokens, source tokens."""

    too_large: Batch | None = None
    """The single pair that did not fit into memory."""
    random: list[list[Tensor]] = field(default_factory=list)
    """Of each batch: the states of the random numbers before its pass, of the CPU and the GPU."""

    def add(self, batch: Batch) -> None:
        """Before its pass."""
        states = [torch.get_rng_state()]
        if batch.source.is_cuda:
            states.append(torch.cuda.get_rng_state(batch.source.device))
        self.batches.append(batch)
        self.random.append(states)

    def restart(self) -> None:
        """Back to before the first pass, with all batches that have come so far."""
        self.sums = []
        if self.batches[0].source.is_cuda:
            torch.cuda.empty_cache()

    def set_random(self, place: int) -> None:
        """The random numbers that a batch began with."""
        torch.set_rng_state(self.random[place][0])
        if self.batches[place].source.is_cuda:
            torch.cuda.set_rng_state(self.random[place][1], self.batches[place].source.device)

    def clear(self) -> None:
        """Forget it all: the next batch begins an update."""
        self.batches, self.sums, self.random, self.too_large = [], [], [], None

    def total(self) -> Tensor:
        """The sums of all batches of this process [4]."""
        return torch.stack(self.sums).sum(0) if self.sums else torch.full((4,), torch.nan)

    def suspects(self) -> list[tuple[list[int], float]]:
        """The pairs of each batch, and its loss a target token; of one that is too large, it."""
        if self.too_large is not None:
            return [(self.too_large.index.tolist(), math.nan)]
        losses = [sums[:3].tolist() for sums in self.sums]
        return [
            (batch.index.tolist(), minimised / targets)
            for batch, (minimised, _, targets) in zip(self.batches, losses, strict=True)
        ]


def gradient_scale(targets: float, batches: int, processes: int) -> float:
    """What turns the gradient that has come together into that of the mean over ``targets`` tokens.

    It has been divided by NOMINAL, by Lightning by ``batches`` (trainer.accumulate), and as a mean
    over ``processes``.
    """
    return NOMINAL * batches * processes / targets


def gradient_norm(parameters: Iterable[nn.Parameter]) -> Tensor:
    """The Euclidean norm of all gradients together, on the device; 0 where there are none."""
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    return whole(norm)


@torch.no_grad()
def scale_gradients(parameters: Iterable[nn.Parameter], factor: float) -> None:
    """Multiply all gradients in place."""
    if gradients := [p.grad for p in parameters if p.grad is not None]:
        torch._foreach_mul_(gradients, factor)


def drop_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Without a gradient an optimiser leaves a parameter, and its own memory of it, as they are."""
    for parameter in parameters:
        parameter.grad = None


def clipped(scale: float, norm: float, clip: float | None) -> float:
    """The factor that scales a gradient, and shortens it where it would be longer than ``clip``."""
    if clip is None:
        return scale
    return scale * min(1.0, clip / (scale * norm + 1e-6))


def zero_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Give every parameter a gradient of 0."""
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)


def exact_type(model: nn.Module) -> torch.dtype:
    """The type that sums are formed in: the parameters', but at least float32."""
    return torch.promote_types(next(model.parameters()).dtype, torch.float32)
