"""When to validate, the training curve, and when there is no more hope."""

from dataclasses import asdict, dataclass
from typing import Any

import lightning

from kakehashi.training.module import TranslationTask
from kakehashi.training.plan import Plan
from kakehashi.training.updates import UpdateCallback
from kakehashi.training.validation import Validated

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

    @property
    def rank(self) -> float:
        """What it is compared with others by."""
        return Validated(self.nll, self.bleu).rank


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
            "train/loss": task.loss,
            "train/nll": task.nll,
            "train/gradient_norm": task.gradient_norm,
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


class Patience(UpdateCallback):
    """Ends the run after so many validations in a row without a better score."""

    def __init__(self, patience: int) -> None:
        super().__init__()
        self.patience = patience
        self.best = float("-inf")
        self.waited = 0

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"best": self.best, "waited": self.waited}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self.best, self.waited = state_dict["best"], state_dict["waited"]

    def on_train_start(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        super().on_train_start(trainer, pl_module)
        trainer.should_stop = self.waited >= self.patience

    def on_validated(self, trainer: lightning.Trainer, task: TranslationTask) -> None:
        assert task.validated is not None
        if task.validated.rank > self.best:
            self.best, self.waited = task.validated.rank, 0
        else:
            self.waited += 1
        trainer.should_stop = self.waited >= self.patience
