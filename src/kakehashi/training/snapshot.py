"""What a checkpoint tells of the model: the weights, after which update, and of which run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from kakehashi.errors import TrainingError
from kakehashi.training.checkpoint import PREFIX, load_checkpoint

IDENTITY = ("tokenizer_sha256", "seed", "run")
"""The facts that all checkpoints of a run have in common, and no other run's do."""


@dataclass(frozen=True)
class Snapshot:
    """The model as a checkpoint holds it."""

    path: Path
    update: int
    weights: Mapping[str, Tensor]
    """Parameters and buffers, named as the model names them; tied ones share their memory."""
    facts: Mapping[str, Any]
    """Plain values about the run."""


def open_snapshot(path: Path) -> Snapshot:
    """Read a checkpoint, tensors and plain containers only.

    Raises:
        TrainingError: for a file that is missing, damaged, or no checkpoint of a run.
    """
    update, state, facts = _parts(path, "global_step", "state_dict", "kakehashi")
    weights = {n.removeprefix(PREFIX): w for n, w in state.items() if n.startswith(PREFIX)}
    return Snapshot(path, update, weights, facts)


@dataclass(frozen=True)
class Progress:
    """How far a run had come when a checkpoint was written."""

    update: int
    total_updates: int | None
    """None while a time budget has not been turned into a number of updates."""
    best_bleu: float | None
    """The best validation so far; None where the checkpoint knows of none."""


def read_progress(path: Path) -> Progress:
    """From a checkpoint, its weights aside.

    Raises:
        TrainingError: for a file that is missing, damaged, or no checkpoint of a run.
    """
    update, callbacks, facts = _parts(path, "global_step", "callbacks", "kakehashi")
    best = callbacks.get("Checkpoints", {}).get("best")
    return Progress(update, facts["total_updates"], None if best is None else float(best["bleu"]))


def refuse_other_run(first: Snapshot, other: Snapshot) -> None:
    """Refuse checkpoints whose weights have nothing to do with each other.

    Two runs arrive at different places, and the mean of two places is none.

    Raises:
        TrainingError: names the first fact in which they differ, and both values.
    """
    for fact in IDENTITY:
        here, there = first.facts.get(fact), other.facts.get(fact)
        if here != there:
            raise TrainingError(
                f"{first.path} and {other.path} are of different runs, which have no mean: {fact} "
                f"is {_short(here)} in the first and {_short(there)} in the second"
            )


def _parts(path: Path, *names: str) -> list[Any]:
    checkpoint: Any = load_checkpoint(path)
    lacking = [name for name in names if not isinstance(checkpoint, dict) or name not in checkpoint]
    if lacking:
        raise TrainingError(
            f"{path} is not a checkpoint of `kakehashi train`: it lacks {', '.join(lacking)}"
        )
    return [checkpoint[name] for name in names]


def _short(value: Any) -> str:
    return str(value)[:16]
