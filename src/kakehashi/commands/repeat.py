"""The words that started a run, and those that repeat it."""

import shlex
from collections.abc import Sequence

from kakehashi.training.config import TrainerConfig

LENGTHS = ("max_updates", "max_epochs", "max_minutes")


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
