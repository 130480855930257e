"""The base of callbacks that count updates, not batches, and know the time validations took."""

import time
from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback

from kakehashi.training.module import TranslationTask


class UpdateCallback(Callback):
    """Calls ``on_update`` once for each update, however many batches were accumulated for it.

    Its clock stands still while the run does: a resumed run goes on from the seconds it had.
    """

    def __init__(self) -> None:
        self.update = 0
        """Updates heard of."""
        self.started = time.monotonic()
        """When training started, by the monotonic clock; later by all that a run stood still."""
        self.validating = 0.0
        """Seconds spent in validations."""
        self._before = 0.0

    @property
    def elapsed(self) -> float:
        """Seconds of training and validation so far."""
        return time.monotonic() - self.started

    def on_update(self, trainer: lightning.Trainer, task: TranslationTask) -> None:
        """After an update."""

    def on_validated(self, trainer: lightning.Trainer, task: TranslationTask) -> None:
        """After a validation."""

    def state_dict(self) -> dict[str, Any]:
        return {"seconds": self.elapsed, "validating": self.validating}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._before, self.validating = state_dict["seconds"], state_dict["validating"]

    def on_train_start(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        self.started = time.monotonic() - self._before
        self.update = trainer.global_step

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
        assert isinstance(pl_module, TranslationTask)
        self.on_update(trainer, pl_module)

    def on_validation_start(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        self.validating -= time.monotonic()

    def on_validation_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        self.validating += time.monotonic()
        assert isinstance(pl_module, TranslationTask)
        self.on_validated(trainer, pl_module)
