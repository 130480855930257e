"""The base of callbacks that count updates, not batches, and know the time validations took."""

import time
from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback

from kakehashi.training.module import TranslationTask


class UpdateCallback(Callback):
    """Calls ``on_update`` once for each update, however many batches were accumulated for it."""

    def __init__(self) -> None:
        self.update = 0
        """Updates heard of."""
        self.started = 0.0
        """When training started, by the monotonic clock."""
        self.validating = 0.0
        """Seconds spent in validations."""

    def on_update(self, trainer: lightning.Trainer, task: TranslationTask) -> None:
        """After an update."""

    def on_validated(self, trainer: lightning.Trainer, task: TranslationTask) -> None:
        """After a validation."""

    def on_train_start(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        self.started = time.monotonic()

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
