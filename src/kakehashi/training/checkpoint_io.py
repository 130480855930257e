"""Lightning's way to our checkpoint files."""

from pathlib import Path
from typing import Any

from lightning.fabric.plugins import CheckpointIO
from lightning.fabric.utilities.types import _PATH

from kakehashi.training.checkpoint import load_checkpoint, write_checkpoint


class AtomicCheckpointIO(CheckpointIO):
    """Lightning's way to ``write_checkpoint`` and ``load_checkpoint``."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: _PATH, storage_options: Any | None = None
    ) -> None:
        write_checkpoint(checkpoint, Path(path))

    def load_checkpoint(
        self,
        path: _PATH,
        map_location: Any | None = None,
        weights_only: bool | None = None,
    ) -> dict[str, Any]:
        return load_checkpoint(Path(path))

    def remove_checkpoint(self, path: _PATH) -> None:
        Path(path).unlink(missing_ok=True)
