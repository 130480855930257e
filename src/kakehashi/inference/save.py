"""Writing a model folder: complete under its name, or not there at all."""

import filecmp
import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from kakehashi.data.seen import TrainingSentences
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.errors import BundleError
from kakehashi.inference.folder import CARD, CONFIG, TOKENIZER, TRAINING_HASHES, WEIGHTS
from kakehashi.inference.settings import BundleConfig, dump_settings
from kakehashi.inference.weights import dump_weights
from kakehashi.models.interface import TranslationModel


def save_bundle(
    folder: str | Path,
    model: TranslationModel[Any],
    tokenizer: Tokenizer,
    *,
    source_language: str,
    target_language: str,
    max_length: int,
    decoding: DecodingConfig,
    card: str,
    metadata: dict[str, Any],
    training: TrainingSentences | None = None,
) -> Path:
    """Write a finished model as a folder and return its path.

    The files are written to a temporary neighbour, synced, and renamed into place together.

    Args:
        folder: where to; its parents are made.
        model: the model to save, from any device.
        tokenizer: the one it was trained with.
        source_language: code of the language it reads, such as de.
        target_language: code of the language it writes.
        max_length: most pieces of a training sentence, EOS included.
        decoding: the search to use by default.
        card: the text of README.md, see ``inference.card``.
        metadata: facts for people, as JSON allows them.
        training: the sentences it was trained on, to tell whether a test set has some of them.

    Raises:
        BundleError: when the folder exists with other content (saving the same again is fine),
            when model and tokenizer do not belong together, or it cannot be written.
    """
    folder = Path(folder).expanduser()
    if model.vocab_size != tokenizer.vocab_size:
        raise BundleError(
            f"the model has a vocabulary of {model.vocab_size:,} and the tokenizer "
            f"{tokenizer.vocab_size:,} pieces; they do not belong together"
        )
    weights = dump_weights(model)
    config = BundleConfig(
        model=model.config,
        vocab_size=model.vocab_size,
        source_language=source_language,
        target_language=target_language,
        max_length=max_length,
        decoding=decoding,
        tokenizer_sha256=tokenizer.fingerprint,
        weights_sha256=hashlib.sha256(weights).hexdigest(),
        alignment=model.alignment,
        metadata=metadata,
    )
    files = {
        CONFIG: dump_settings(config).encode("utf-8"),
        WEIGHTS: weights,
        TOKENIZER: tokenizer.to_bytes(),
        CARD: card.encode("utf-8"),
    }
    if training is not None:
        files[TRAINING_HASHES] = training.to_bytes()
    try:
        _write_folder(folder, files)
    except OSError as error:
        raise BundleError(f"cannot write {folder}: {error.strerror or error}") from error
    return folder


def _write_folder(folder: Path, files: dict[str, bytes]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for name, content in files.items():
            with (temporary / name).open("wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
        temporary.chmod(0o777 & ~_umask())
        if folder.exists() and any(folder.iterdir()):
            if _same(folder, temporary, list(files)):
                return
            raise BundleError(
                f"{folder} exists and holds something else; give another name or move it away"
            )
        temporary.replace(folder)
        _sync(folder.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _same(folder: Path, other: Path, names: list[str]) -> bool:
    """Whether both folders hold these files, with equal bytes, and nothing else."""
    if sorted(path.name for path in folder.iterdir()) != sorted(names):
        return False
    return filecmp.cmpfiles(folder, other, names, shallow=False)[0] == names


def _umask() -> int:
    """What the user takes away from new files; mkdtemp takes everything from group and others."""
    current = os.umask(0)
    os.umask(current)
    return current


def _sync(folder: Path) -> None:
    """Make the renaming itself durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
