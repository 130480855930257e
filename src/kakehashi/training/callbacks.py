"""When to validate, and the training curve."""

import time
from dataclasses import dataclass
from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback

from kakehashi.training.module import TranslationTask
from kakehashi.training.plan import Plan

NEVER = 10**15
"""As a number of batches between validations."""


class ValidationClock(Callback):
    """Has Lightning validate when the plan says so.

    Lightning counts batches; the plan counts updates, and may learn its total during the run.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.update = 0

    def on_train_batch_end(
        self,
        trainer: lightning.Trainer,
        pl_module: lightning.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        due = trainer.global_step != self.update and self.plan.validates_at(trainer.global_step)
        self.update = trainer.global_step
        trainer.val_check_batch = 1 if due else NEVER


@dataclass(frozen=True)
class Point:
    """One validation of the run."""

    update: int
    seconds: float
    """Since training started, validations included."""
    nll: float
    bleu: float


class Recorder(Callback):
    """Logs a few numbers every ``log_every`` updates, and keeps the validations and the times."""

    def __init__(self, log_every: int) -> None:
        self.log_every = log_every
        self.points: list[Point] = []
        self.started = 0.0
        self.seconds = 0.0
        """Of the whole fit, validations included."""
        self.validating = 0.0
        self.update = 0
        self.mark = (0.0, 0)

    def on_train_start(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        self.started = time.monotonic()
        self.mark = (0.0, 0)

    def on_train_batch_end(
        self,
        trainer: lightning.Trainer,
        pl_module: lightning.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        if trainer.global_step == self.update:
            return
        self.update = trainer.global_step
        if self.update % self.log_every:
            return
        assert isinstance(pl_module, TranslationTask)
        training = time.monotonic() - self.started - self.validating
        seconds, tokens = self.mark
        self.mark = (training, pl_module.tokens)
        metrics = {
            "train/loss": float(outputs["loss"]) * trainer.accumulate_grad_batches,
            "train/nll": pl_module.nll,
            "train/learning_rate": trainer.optimizers[0].param_groups[0]["lr"],
            "train/tokens_per_second": (pl_module.tokens - tokens) / max(training - seconds, 1e-9),
        }
        for logger in trainer.loggers:
            logger.log_metrics(metrics, step=self.update)

    def on_validation_start(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        self.validating -= time.monotonic()

    def on_validation_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        self.validating += time.monotonic()
        assert isinstance(pl_module, TranslationTask)
        assert pl_module.validated is not None
        scores = pl_module.validated
        seconds = time.monotonic() - self.started
        self.points.append(Point(trainer.global_step, seconds, scores.nll, scores.bleu))

    def on_train_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        self.seconds = time.monotonic() - self.started
