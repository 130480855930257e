"""Means of the weights over time.

The mean over the last part of a run costs next to nothing and is worth about as much as a longer
decay of the learning rate (Izmailov et al., 2018; checkpoint averaging: Junczys-Dowmunt et al.,
2016). Whether it is better than the best checkpoint is measured at the end, not assumed.
"""

from pathlib import Path
from typing import Any

import lightning
import torch
from torch import Tensor, nn

from kakehashi.errors import TrainingError
from kakehashi.training.config import AveragingConfig
from kakehashi.training.mean import Mean
from kakehashi.training.module import TranslationTask
from kakehashi.training.plan import Plan
from kakehashi.training.sharding import gathered, share_of
from kakehashi.training.snapshot import open_snapshot
from kakehashi.training.updates import UpdateCallback

Weights = dict[str, Tensor]


class WeightMean(UpdateCallback):
    """Running mean (``mean``) or exponential average (``ema``) of the weights, kept in float32."""

    def __init__(self, config: AveragingConfig, plan: Plan) -> None:
        super().__init__()
        self.config = config
        self.plan = plan
        self.weights: Weights = {}
        self.count = 0
        """Updates in the average."""

    @torch.no_grad()
    def add(self, model: nn.Module) -> None:
        """Take in the weights as they are now."""
        now = {name: p.detach() for name, p in model.named_parameters()}
        self.count += 1
        if self.count == 1:
            self.weights = {name: p.float().clone() for name, p in now.items()}
            return
        self.weights = {name: share_of(self.weights[name], p) for name, p in now.items()}
        share = 1.0 / self.count if self.config.kind == "mean" else 1.0 - self.config.decay
        mine = [self.weights[name] for name in now]
        torch._foreach_lerp_(mine, [p.float() for p in now.values()], share)

    def on_update(self, trainer: lightning.Trainer, task: TranslationTask) -> None:
        if task.cause is not None:
            return
        total, start = self.plan.total, self.config.start
        if start == 0 or (total is not None and self.update > start * total):
            self.add(task.model)

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"weights": gathered(self.weights), "count": self.count}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self.weights, self.count = state_dict["weights"], state_dict["count"]


def mean_of_checkpoints(paths: list[Path]) -> Weights:
    """The mean of the models in checkpoints of one run.

    Raises:
        TrainingError: when they are of different runs, or hold different models.
    """
    mean = Mean()
    for path in paths:
        mean.add(open_snapshot(path))
    return mean.weights()


@torch.no_grad()
def put_weights(model: nn.Module, weights: Weights) -> None:
    """Copy averaged or stored weights into a model; tied ones come once.

    Raises:
        TrainingError: when a weight is missing, or has another shape.
    """
    for name, parameter in model.named_parameters():
        if name not in weights or weights[name].shape != parameter.shape:
            raise TrainingError(f"the stored weights do not fit the model at {name}")
        parameter.copy_(weights[name])
