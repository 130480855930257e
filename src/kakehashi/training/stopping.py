"""Ways in which a run ends before its time: a signal, or no better score for too long."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.utilities.exceptions import SIGTERMException

from kakehashi.errors import Stopped
from kakehashi.training.module import TranslationTask
from kakehashi.training.updates import UpdateCallback

SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGUSR1") if hasattr(signal, name)
]
"""Ctrl-C; what ``kill`` and schedulers send; what SLURM can send ahead of the time limit."""


class StopRequest(Callback):
    """Whether a signal has asked the run to stop; a second one does not wait."""

    def __init__(self) -> None:
        self.number = 0
        """Of the signal; 0 while there was none."""

    def on_train_start(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        # Lightning's own handlers are in place by now; they stop in the middle of an update
        for number in SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:  # what nohup ignores stays ignored
                signal.signal(number, self._ask)

    def on_validation_batch_end(self, *_: Any) -> None:
        if self.number:
            raise Stopped(self.number)  # there is nothing to save in the middle of a validation

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.number:
            raise Stopped(number)
        self.number = number


@contextmanager
def handlers_restored(trainer: lightning.Trainer) -> Iterator[None]:
    """Give signals back to whom they belonged, and Lightning's ways of ending one form.

    Raises:
        Stopped: for SIGTERM and Ctrl-C, whoever noticed them.
    """
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    except SystemExit as end:
        # Lightning makes an exit of its own of either, and leaves Ctrl-C switched off
        if isinstance(end, SIGTERMException):
            raise Stopped(signal.SIGTERM) from None
        if trainer.interrupted:
            raise Stopped(signal.SIGINT) from None
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Patience(UpdateCallback):
    """Ends the run after so many validations in a row without a better BLEU."""

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
        if task.validated.bleu > self.best:
            self.best, self.waited = task.validated.bleu, 0
        else:
            self.waited += 1
        trainer.should_stop = self.waited >= self.patience
