"""What the person who waits sees: on a terminal a live line, elsewhere one line a minute."""

import time
from typing import Any

import lightning
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from kakehashi.data.notes import note
from kakehashi.training.module import TranslationTask
from kakehashi.training.plan import Plan
from kakehashi.training.updates import UpdateCallback

LIVE_SECONDS = 0.5
QUIET_SECONDS = 60.0


class ProgressLine(UpdateCallback):
    """Writes to stderr: update, tokens a second, loss, learning rate, BLEU, time left."""

    def __init__(self, plan: Plan, max_minutes: float | None) -> None:
        super().__init__()
        self.plan = plan
        self.budget = None if max_minutes is None else 60.0 * max_minutes
        self.console = Console(stderr=True)
        self.live = self.console.is_terminal
        self.bar = Progress(
            TextColumn("training"),
            BarColumn(bar_width=24),
            TextColumn("{task.description}"),
            console=self.console,
            transient=True,
        )
        self.task = self.bar.add_task("starting", total=None)
        self.shown = 0.0
        self.loss = 0.0
        self.begun = 0, 0, 0.0, 0.0
        """Updates, tokens, seconds, and seconds of validation of an earlier part of the run."""

    def on_train_start(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        super().on_train_start(trainer, pl_module)
        assert isinstance(pl_module, TranslationTask)
        self.shown = time.monotonic()
        self.begun = self.update, pl_module.tokens, self.elapsed, self.validating
        if self.live and trainer.is_global_zero:
            self.bar.start()

    def on_train_batch_end(
        self,
        trainer: lightning.Trainer,
        pl_module: lightning.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        assert isinstance(pl_module, TranslationTask)
        # mean over about the last fifty batches
        loss = pl_module.nll
        self.loss = loss if self.loss == 0.0 else self.loss + 0.02 * (loss - self.loss)
        now = time.monotonic()
        if now - self.shown < (LIVE_SECONDS if self.live else QUIET_SECONDS):
            return
        self.shown = now
        self._show(trainer, pl_module)

    def _show(self, trainer: lightning.Trainer, task: TranslationTask) -> None:
        if not trainer.is_global_zero:
            return
        text = self.text(trainer.global_step, task, trainer.optimizers[0].param_groups[0]["lr"])
        if self.live:
            self.bar.update(
                self.task, description=text, total=self.plan.total, completed=trainer.global_step
            )
        else:
            note(f"training {text}")

    def text(self, update: int, task: TranslationTask, rate: float) -> str:
        """The line, without the bar."""
        updates, tokens, seconds, validating = self.begun
        elapsed = self.elapsed - seconds
        total = self.plan.total
        if total is not None:
            left = (total - update) * elapsed / max(update - updates, 1)
        else:
            left = max(0.0, (self.budget or 0.0) - self.elapsed)
        speed = (task.tokens - tokens) / max(elapsed - (self.validating - validating), 1e-9)
        parts = [
            f"{update:,}/{total:,} updates" if total is not None else f"{update:,} updates",
            f"{speed:,.0f} tokens/s",
            f"nll {self.loss:.2f}",
            f"lr {rate:.2g}",
        ]
        if task.validated is not None:
            parts.append(f"BLEU {task.validated.bleu:.1f}")
        return " · ".join([*parts, f"{clock(left)} left"])

    def on_validation_start(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        super().on_validation_start(trainer, pl_module)
        if self.live:
            self.bar.update(self.task, description="validating")

    def on_validated(self, trainer: lightning.Trainer, task: TranslationTask) -> None:
        scores = task.validated
        if trainer.is_global_zero and scores is not None:
            line = (
                f"update {trainer.global_step:,}: validation BLEU {scores.bleu:.2f}, "
                f"nll {scores.nll:.3f} a token"
            )
            self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def on_train_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        self._stop()

    def on_exception(
        self,
        trainer: lightning.Trainer,
        pl_module: lightning.LightningModule,
        exception: BaseException,
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        if self.live:
            self.bar.stop()


def clock(seconds: float) -> str:
    """``h:mm:ss``, or ``m:ss`` under an hour."""
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    minutes, seconds_left = divmod(rest, 60)
    if hours:
        return f"{hours}:{minutes:02}:{seconds_left:02}"
    return f"{minutes}:{seconds_left:02}"
