"""Checkpoint files: written whole or not at all, checked when they are read, never unpickled.

A file is what ``torch.save`` writes, a ZIP archive, with the SHA-256 of it in the archive's
comment: ``torch.load`` and every other reader of such files take it as it is.
"""

import hashlib
import os
import struct
from pathlib import Path
from typing import Any, BinaryIO

import torch
from lightning.fabric.plugins import CheckpointIO
from lightning.fabric.utilities.types import _PATH
from torch import Tensor

from kakehashi.errors import TrainingError

PREFIX = "model."
"""Where the translation model stands among the Lightning module's weights."""
COMPILED = "_orig_mod."
"""What ``torch.compile`` puts into the names of weights."""
_SEAL = b"sha256 "
_SEAL_SIZE = len(_SEAL) + 64
_CHUNK = 1 << 20


class _Hashed:
    """A stream that hashes what is written to it, in the order of writing."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self.digest = stream, hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self._stream.write(data)

    def flush(self) -> None:
        self._stream.flush()


def write_checkpoint(checkpoint: dict[str, Any], final: Path) -> None:
    """Write to a temporary neighbour, seal, sync, rename: a crash leaves the old file or the new.

    Raises:
        TrainingError: when it can't be written; the old file is untouched then.
    """
    temporary = final.with_name(f".{final.name}.{os.getpid()}")
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as stream:
            hashed = _Hashed(stream)
            torch.save(checkpoint, hashed)  # type: ignore[arg-type]
            # the archive ends with the length of its comment, which is 0 so far
            stream.seek(-2, os.SEEK_END)
            stream.write(struct.pack("<H", _SEAL_SIZE))
            stream.write(_SEAL + hashed.digest.hexdigest().encode())
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(final)
        sync_folder(final.parent)
    except (OSError, RuntimeError) as error:
        # torch's writer turns a full disk into a RuntimeError of its own at times
        raise TrainingError(
            f"cannot write {final}: {getattr(error, 'strerror', None) or error}"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder last: a file's own sync does not say where the file is found."""
    if os.name == "nt":
        return  # folders can't be opened there
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_seal(path: Path) -> None:
    """Hold a file against the checksum that it carries.

    Raises:
        TrainingError: for a file that is missing, cut short, changed, or not a checkpoint of ours.
    """
    try:
        size = path.stat().st_size - _SEAL_SIZE
        digest = hashlib.sha256()
        with path.open("rb") as stream:
            left = size - 2
            while left > 0 and (part := stream.read(min(_CHUNK, left))):
                digest.update(part)
                left -= len(part)
            end = stream.read()
    except FileNotFoundError:
        raise TrainingError(f"{path} does not exist") from None
    except OSError as error:
        raise TrainingError(f"cannot read {path}: {error.strerror}") from error
    digest.update(b"\0\0")
    seal = struct.pack("<H", _SEAL_SIZE) + _SEAL + digest.hexdigest().encode()
    if size < 2 or end != seal:
        said = "its checksum is another one" if _SEAL in end else "it has no checksum at its end"
        raise TrainingError(f"{path} is not a whole checkpoint: {said}")


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


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Everything in a checkpoint, on the CPU: tensors and plain containers only.

    Weights of a compiled model are named as those of the model itself.

    Raises:
        TrainingError: for a file that is missing, damaged, or not a checkpoint; code in it is
            never run.
    """
    check_seal(path)
    try:
        checkpoint: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise TrainingError(f"{path} is not a whole checkpoint: {error}") from error
    if "state_dict" in checkpoint:
        state = checkpoint["state_dict"]
        checkpoint["state_dict"] = {n.replace(COMPILED, ""): w for n, w in state.items()}
    return checkpoint


def load_weights(path: Path) -> dict[str, Tensor]:
    """The translation model's weights in a checkpoint, named as the model names them."""
    state = load_checkpoint(path)["state_dict"]
    return {
        name.removeprefix(PREFIX): weight
        for name, weight in state.items()
        if name.startswith(PREFIX)
    }
