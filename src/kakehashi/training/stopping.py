"""How a signal ends a run: after the update that is being made, in all processes alike."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import lightning
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.utilities.exceptions import SIGTERMException

from kakehashi.errors import Stopped

SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGUSR1") if hasattr(signal, name)
]
"""Ctrl-C; what ``kill`` and schedulers send; what SLURM can send ahead of the time limit."""


class StopRequest(Callback):
    """Whether a signal has asked the run to stop.

    A process that is alone does not wait when it is asked a second time. Where there are several,
    whoever started them passes signals on, so that each may hear of one twice.
    """

    def __init__(self) -> None:
        self.number = 0
        """Of the signal; 0 while there was none."""
        self._alone = True

    def on_train_start(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        self._alone = trainer.world_size == 1
        # Lightning's own handlers are in place by now; they stop in the middle of an update
        for number in SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:  # what nohup ignores stays ignored
                signal.signal(number, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.number and self._alone:
            raise Stopped(number)
        self.number = self.number or number


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
