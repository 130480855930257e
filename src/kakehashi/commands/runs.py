"""Run folders: the link to the newest one, and the words that repeat a run."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from kakehashi.training.config import TrainerConfig

LENGTHS = ("max_updates", "max_epochs", "max_minutes")


def point_latest(folder: Path) -> None:
    """Let ``latest`` beside a run's folder point to it; readers see the old link or the new one."""
    link = folder.parent / "latest"
    temporary = folder.parent / f".latest.{os.getpid()}"
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(folder.name, target_is_directory=True)
    temporary.replace(link)


def command(words: Sequence[str]) -> str:
    """What was typed."""
    return shlex.join(["kakehashi", "train", *words])


def reproduce(words: Sequence[str], trainer: TrainerConfig, total_updates: int) -> str:
    """The command that repeats a run exactly, with its length in updates.

    A time budget fits another number of updates on every machine and every day.
    """
    if trainer.max_updates is not None:
        return command(words)
    kept = [w for w in words if not w.startswith(tuple(f"trainer.{name}=" for name in LENGTHS))]
    off = [f"trainer.{n}=null" for n in LENGTHS if getattr(trainer, n) is not None]
    return command([*kept, *off, f"trainer.max_updates={total_updates}"])
