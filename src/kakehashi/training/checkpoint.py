"""Checkpoints: written whole or not at all, read without pickle."""

import os
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins import CheckpointIO
from lightning.fabric.utilities.types import _PATH
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import Tensor

from kakehashi.errors import TrainingError

PREFIX = "model."
"""Where the translation model stands among the Lightning module's weights."""


class AtomicCheckpointIO(CheckpointIO):
    """Writes to a temporary neighbour, syncs, renames: a crash leaves the old file or the new."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: _PATH, storage_options: Any | None = None
    ) -> None:
        final = Path(path)
        final.parent.mkdir(parents=True, exist_ok=True)
        temporary = final.with_name(f".{final.name}.{os.getpid()}")
        try:
            with temporary.open("wb") as stream:
                torch.save(checkpoint, stream)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(final)
        except OSError as error:
            raise TrainingError(f"cannot write {final}: {error.strerror or error}") from error
        finally:
            temporary.unlink(missing_ok=True)

    def load_checkpoint(
        self,
        path: _PATH,
        map_location: Any | None = None,
        weights_only: bool | None = None,
    ) -> dict[str, Any]:
        return load_checkpoint(Path(path))

    def remove_checkpoint(self, path: _PATH) -> None:
        Path(path).unlink(missing_ok=True)


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Everything in a checkpoint, on the CPU: tensors and plain containers only.

    Raises:
        TrainingError: for a file that is missing, cut short, or not a checkpoint.
    """
    try:
        checkpoint: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise TrainingError(f"{path} does not exist") from None
    except Exception as error:
        raise TrainingError(f"{path} is not a whole checkpoint: {error}") from error
    return checkpoint


def load_weights(path: Path) -> dict[str, Tensor]:
    """The translation model's weights in a checkpoint, named as the model names them."""
    state = load_checkpoint(path)["state_dict"]
    return {
        name.removeprefix(PREFIX): weight
        for name, weight in state.items()
        if name.startswith(PREFIX)
    }


def checkpoint_callbacks(folder: Path, keep: int) -> tuple[ModelCheckpoint, ModelCheckpoint]:
    """(the best by validation BLEU, the ``keep`` newest), written after each validation."""
    shared: dict[str, Any] = {
        "dirpath": folder,
        "mode": "max",
        "auto_insert_metric_name": False,
        "save_on_train_epoch_end": False,
        "enable_version_counter": False,
    }
    best = ModelCheckpoint(filename="best", monitor="valid/rank", save_top_k=1, **shared)
    newest = ModelCheckpoint(filename="update-{step}", monitor="step", save_top_k=keep, **shared)
    return best, newest
