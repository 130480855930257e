"""Going on with a run: from which checkpoint, and whether it is of this run at all."""

from pathlib import Path
from typing import Any

from torch import nn

from kakehashi.errors import TrainingError
from kakehashi.processes import is_first
from kakehashi.training.checkpoint import PREFIX
from kakehashi.training.saving import by_update, newest_whole

FACTS = {
    "seed": "seed",
    "tokenizer_sha256": "the tokenizer",
    "text_sha256": "the training text",
    "alignments_sha256": "the alignments (objective.alignments)",
}
"""What has to be as it was, and how to call it."""


def going_on_from(folder: Path) -> Path | None:
    """The newest whole checkpoint; damaged ones that are newer get another name, and stay.

    Raises:
        TrainingError: when all are damaged.
    """
    path = newest_whole(folder)
    if not is_first():
        return path
    for unfinished in folder.glob(".*.ckpt.*"):  # left by a process that was killed in writing it
        unfinished.unlink()
    for newer in by_update(folder):
        if newer == path:
            break
        newer.replace(newer.with_name(f"{newer.name}.damaged"))
    return path


def check_fits(
    checkpoint: dict[str, Any], model: nn.Module, facts: dict[str, Any], path: Path
) -> None:
    """Refuse a checkpoint of another run, tokenizer, text, alignments or architecture.

    Raises:
        TrainingError: naming what differs, or the first weight that does not fit.
    """
    saved = checkpoint["kakehashi"]
    for name, called in FACTS.items():
        if name in facts and saved.get(name) != facts[name]:
            raise TrainingError(
                f"{path} was written with another value of {called} ({saved.get(name)}, now "
                f"{facts[name]}): this run cannot go on from it"
            )
    shapes = {
        name.removeprefix(PREFIX): tuple(weight.shape)
        for name, weight in checkpoint["state_dict"].items()
        if name.startswith(PREFIX)
    }
    wanted = {name: tuple(weight.shape) for name, weight in model.state_dict().items()}
    for name in sorted(shapes.keys() | wanted.keys()):
        if shapes.get(name) != wanted.get(name):
            raise TrainingError(
                f"{path} holds another model: {name} is {_said(shapes.get(name))} there and "
                f"{_said(wanted.get(name))} here; resume with the model's settings of that run"
            )


def _said(shape: tuple[int, ...] | None) -> str:
    if shape is None:
        return "absent"
    return " x ".join(map(str, shape)) or "a number"
