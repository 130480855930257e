"""When checkpoints are written, which are kept, and which one a run goes on from."""

import os
import re
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import lightning
from lightning.pytorch.callbacks import Checkpoint

from kakehashi.data.notes import note
from kakehashi.errors import Stopped, TrainingError
from kakehashi.processes import is_first
from kakehashi.training.agreement import largest
from kakehashi.training.checkpoint import check_seal, load_checkpoint, sync_folder
from kakehashi.training.module import TranslationTask
from kakehashi.training.plan import Plan
from kakehashi.training.stopping import StopRequest
from kakehashi.training.updates import UpdateCallback
from kakehashi.training.validation import Validated

BEST = "best.ckpt"
_NAME = re.compile(r"(update|between)-(\d+)\.ckpt")


class Checkpoints(UpdateCallback, Checkpoint):
    """Writes ``update-N.ckpt`` after a validation, ``between-N.ckpt`` at times between two.

    ``best.ckpt`` is the one of them that validated best, the first of equals. Kept
    are the best, the ``keep`` newest after validations, and the two newest of all, so that there
    is always a whole one, whatever becomes of the last.

    A checkpoint stands for the moment after an update and, where one is due, its validation: so a
    run that goes on from it does everything that comes next, and nothing twice. It comes last
    among the callbacks, whose states it keeps. A run that is asked to stop is saved, and stops.
    """

    def __init__(
        self, folder: Path, plan: Plan, request: StopRequest, keep: int, minutes: float
    ) -> None:
        """``minutes`` from one checkpoint to the next, at most, but for long validations."""
        super().__init__()
        self.request = request
        self.folder, self.plan, self.keep, self.minutes = folder, plan, keep, minutes
        self.best: tuple[int, Validated] | None = None
        """Update and scores of the best."""
        self.spent = 0.0
        """Seconds that writing took."""
        self.written = time.monotonic()

    def state_dict(self) -> dict[str, Any]:
        best = None if self.best is None else {"update": self.best[0], **asdict(self.best[1])}
        return super().state_dict() | {"best": best, "spent": self.spent}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        best = state_dict["best"]
        if best is not None and settle_best(self.folder, best["update"]):
            self.best = best["update"], Validated(best["nll"], best["bleu"])
        self.spent = state_dict["spent"]

    def on_train_start(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        super().on_train_start(trainer, pl_module)
        self.written = time.monotonic()

    def on_update(self, trainer: lightning.Trainer, task: TranslationTask) -> None:
        if self.plan.validates_at(self.update):
            return  # the checkpoint comes after the validation
        late = time.monotonic() - self.written >= 60 * self.minutes
        due, signal = largest(trainer, int(late and trainer.is_global_zero), self.request.number)
        if due or signal:
            self.save(trainer, "between")
        if signal:
            raise Stopped(signal)

    def on_validated(self, trainer: lightning.Trainer, task: TranslationTask) -> None:
        assert task.validated is not None
        best = self.best is None or task.validated.rank > self.best[1].rank
        if best:
            self.best = trainer.global_step, task.validated
        path = self.save(trainer, "update")
        if best and trainer.is_global_zero:
            link(path, self.folder / BEST)
        (signal,) = largest(trainer, self.request.number)
        if signal:
            raise Stopped(signal)

    def save(self, trainer: lightning.Trainer, kind: str) -> Path:
        """Write the state as it is now, then remove what is no longer kept."""
        start = time.monotonic()
        path = self.folder / f"{kind}-{trainer.global_step}.ckpt"
        try:
            for logger in trainer.loggers:
                logger.save()  # curves on disk reach as far as the state does
        except OSError as error:
            raise TrainingError(f"cannot write the curves: {error.strerror or error}") from error
        trainer.save_checkpoint(path)
        if trainer.is_global_zero:
            self._prune()
        self.written = time.monotonic()
        self.spent += self.written - start
        return path

    def _prune(self) -> None:
        every = by_update(self.folder)
        kept = [*every[:2], *validated(self.folder)[: self.keep]]
        for path in every:
            if path not in kept:
                path.unlink(missing_ok=True)


def link(path: Path, name: Path) -> None:
    """Give a file a second name, in place of what had it.

    Raises:
        TrainingError: when that cannot be written.
    """
    temporary = name.with_name(f".{name.name}.{os.getpid()}")
    try:
        temporary.unlink(missing_ok=True)
        try:
            os.link(path, temporary)
        except OSError:  # a file system without links
            temporary.write_bytes(path.read_bytes())
        temporary.replace(name)
        sync_folder(name.parent)
    except OSError as error:
        raise TrainingError(f"cannot write {name}: {error.strerror or error}") from error


def is_whole(path: Path) -> bool:
    """Whether a checkpoint is as it was written; what is wrong with it is said on stderr."""
    try:
        check_seal(path)
    except TrainingError as error:
        note(str(error))
        return False
    return True


def by_update(folder: Path) -> list[Path]:
    """The checkpoints in a folder but for the best one's second name, newest first."""
    found = [(_NAME.fullmatch(path.name), path) for path in folder.glob("*.ckpt")]
    numbered = [(int(match[2]), path) for match, path in found if match is not None]
    return [path for _, path in sorted(numbered, reverse=True)]


def validated(folder: Path) -> list[Path]:
    """Those that were written after a validation, newest first."""
    return [path for path in by_update(folder) if path.name.startswith("update-")]


def newest_whole(folder: Path) -> Path | None:
    """The newest checkpoint that is whole; None where there is none at all.

    Each damaged one that has to be passed over is named on stderr.

    Raises:
        TrainingError: when there are checkpoints, and all of them are damaged.
    """
    paths = by_update(folder)
    if (folder / BEST).exists():
        paths.append(folder / BEST)
    passed = False
    for path in paths:
        try:
            update = load_checkpoint(path)["global_step"]
        except TrainingError as error:
            note(str(error))
            passed = True
            continue
        if passed:
            note(f"going back to update {update:,}, {path}")
        return path
    if passed:
        raise TrainingError(
            f"no checkpoint in {folder} is whole: this run cannot be resumed; start it anew"
        )
    return None


def settle_best(folder: Path, update: int) -> bool:
    """Have ``best.ckpt`` be the checkpoint of the best update; False, and a note, if it is lost.

    A run that goes back to an older checkpoint may find another one there, or a damaged file.
    """
    for path in (folder / BEST, folder / f"update-{update}.ckpt"):
        try:
            if load_checkpoint(path)["global_step"] != update:
                continue
        except TrainingError:
            continue
        if path.name != BEST and is_first():
            link(path, folder / BEST)
        return True
    note(f"the best checkpoint so far (update {update:,}) is lost: the next validation is the best")
    return False
