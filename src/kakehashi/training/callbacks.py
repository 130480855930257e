"""When to validate, and the training curve."""

from dataclasses import asdict, dataclass
from typing import Any

import lightning

from kakehashi.training.module import TranslationTask
from kakehashi.training.plan import Plan
from kakehashi.training.updates import UpdateCallback

NEVER = 10**15
"""As a number of batches between validations."""


class ValidationClock(UpdateCallback):
    """Has Lightning validate when the plan says so.

    Lightning counts batches; the plan counts updates, and may learn its total during the run.
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan

    def on_train_batch_start(
        self,
        trainer: lightning.Trainer,
        pl_module: lightning.LightningModule,
        batch: Any,
        batch_idx: int,
    ) -> None:
        trainer.val_check_batch = NEVER

    def on_update(self, trainer: lightning.Trainer, task: TranslationTask) -> None:
        if self.plan.validates_at(self.update):
            trainer.val_check_batch = 1


@dataclass(frozen=True)
class Point:
    """One validation of the run."""

    update: int
    seconds: float
    """Since training started, validations included."""
    nll: float
    bleu: float


class Recorder(UpdateCallback):
    """Logs a few numbers every ``log_every`` updates, and keeps the validations and the times."""

    def __init__(self, log_every: int) -> None:
        super().__init__()
        self.log_every = log_every
        self.points: list[Point] = []
        self.seconds = 0.0
        """Of the whole fit, validations included."""
        self.mark = (0.0, 0)

    def state_dict(self) -> dict[str, Any]:
        points = [asdict(point) for point in self.points]
        return super().state_dict() | {"points": points, "mark": list(self.mark)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self.seconds = state_dict["seconds"]
        self.points = [Point(**point) for point in state_dict["points"]]
        seconds, tokens = state_dict["mark"]
        self.mark = seconds, tokens

    def on_update(self, trainer: lightning.Trainer, task: TranslationTask) -> None:
        if self.update % self.log_every:
            return
        training = self.elapsed - self.validating
        seconds, tokens = self.mark
        self.mark = (training, task.tokens)
        metrics = {
            "train/loss": task.loss.item(),
            "train/nll": task.nll,
            "train/learning_rate": trainer.optimizers[0].param_groups[0]["lr"],
            "train/tokens_per_second": (task.tokens - tokens) / max(training - seconds, 1e-9),
        }
        self._log(trainer, metrics)

    def on_validated(self, trainer: lightning.Trainer, task: TranslationTask) -> None:
        assert task.validated is not None
        point = Point(self.update, self.elapsed, task.validated.nll, task.validated.bleu)
        self.points.append(point)
        self._log(trainer, {"valid/bleu": point.bleu, "valid/nll": point.nll})

    def _log(self, trainer: lightning.Trainer, metrics: dict[str, float]) -> None:
        for logger in trainer.loggers:
            logger.log_metrics(metrics, step=self.update)

    def on_train_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        self.seconds = self.elapsed
