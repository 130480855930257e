"""Processes of one run deciding alike."""

from typing import TypeVar

import lightning
import torch

T = TypeVar("T")


def largest(trainer: lightning.Trainer, *values: int) -> list[int]:
    """Of each number the largest that any process has; every process has to ask."""
    if trainer.world_size == 1:
        return list(values)
    shared = torch.tensor(values, device=trainer.strategy.root_device)
    torch.distributed.all_reduce(shared, torch.distributed.ReduceOp.MAX)
    agreed: list[int] = shared.tolist()
    return agreed


def gathered(trainer: lightning.Trainer, value: T) -> list[T]:
    """The value of every process, in their order; every process has to ask."""
    if trainer.world_size == 1:
        return [value]
    values: list[T] = [value] * trainer.world_size
    torch.distributed.all_gather_object(values, value)
    return values
