"""Processes of one run deciding alike."""

import lightning
import torch


def largest(trainer: lightning.Trainer, *values: int) -> list[int]:
    """Of each number the largest that any process has; every process has to ask."""
    if trainer.world_size == 1:
        return list(values)
    shared = torch.tensor(values, device=trainer.strategy.root_device)
    torch.distributed.all_reduce(shared, torch.distributed.ReduceOp.MAX)
    agreed: list[int] = shared.tolist()
    return agreed
