"""A model folder that `kakehashi export --to ctranslate2` wrote, and loading it; without torch.

Beside CTranslate2's own files (``model.bin``, ``config.json``, ``shared_vocabulary.json``) it holds
``tokenizer.model``, ``README.md``, ``kakehashi.json`` (what config.json of a model folder says) and
``export.json`` (hashes, and the proof that it does what the original does).
"""

import hashlib
import json
from pathlib import Path
from shlex import quote
from typing import Any

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.errors import BundleError, TokenizerError
from kakehashi.inference.ctranslate2_engine import CTranslate2Engine
from kakehashi.inference.folder import bundle_folder, read_config
from kakehashi.inference.settings import BundleConfig, parse_settings
from kakehashi.models.config import RNNConfig

MODEL, SETTINGS, RECORD, TOKENIZER = (
    "model.bin",
    "kakehashi.json",
    "export.json",
    "tokenizer.model",
)
BESIDE = "ctranslate2"
"""Where an export is looked for in the folder of the model that it was made of."""


def exported_folder(path: str | Path) -> Path:
    """The export that a path means: itself, or ``ctranslate2`` in a model folder or a run folder.

    Raises:
        BundleError: where there is none; says how to make one, or that the model is for torch only.
    """
    path = Path(path).expanduser()
    for folder in (path, path / BESIDE, path / "model" / BESIDE):
        if (folder / MODEL).is_file() and (folder / RECORD).is_file():
            return folder
    if not path.exists():
        raise BundleError(f"there is no model folder {path} (looked from {Path.cwd()})")
    config = read_config(bundle_folder(path))
    if isinstance(config.model, RNNConfig):
        raise BundleError(
            f"{path} is a recurrent model, and CTranslate2 runs Transformers only: use --engine "
            "torch"
        )
    raise BundleError(
        f"{path} has not been exported for CTranslate2; do it once, with: kakehashi export "
        f"{quote(str(path))} --to ctranslate2 -o {quote(str(path / BESIDE))}"
    )


def load_exported(
    path: str | Path, device: str | None = None
) -> tuple[CTranslate2Engine, Tokenizer, BundleConfig]:
    """Engine, tokenizer and settings of an exported folder.

    Raises:
        BundleError: for a folder that is missing, incomplete or damaged.
        ConfigError: where CTranslate2 is not installed, or cannot use the device.
    """
    folder = exported_folder(path)
    record = read_record(folder)
    for name, expected in record["files"].items():
        if hashlib.sha256(_read(folder, name)).hexdigest() != expected:
            raise BundleError(
                f"{folder / name} is damaged or from another model: its SHA-256 is not the one in "
                f"{RECORD}; copy the folder again"
            )
    text = _read(folder, SETTINGS).decode("utf-8", "replace")
    config = parse_settings(text, str(folder / SETTINGS))
    try:
        tokenizer = Tokenizer.from_bytes(_read(folder, TOKENIZER))
    except TokenizerError as error:
        raise BundleError(f"{folder / TOKENIZER} is damaged ({error}); copy it again") from error
    engine = CTranslate2Engine(
        folder,
        tokenizer.pieces(range(tokenizer.vocab_size)),
        positions=record["positions"],
        silenced=record["silenced"],
        shift=config.alignment.shift,
        device=device or "cpu",
    )
    return engine, tokenizer, config


def read_record(folder: Path) -> dict[str, Any]:
    """export.json; raises BundleError where it is not what an export writes."""
    try:
        record = json.loads(_read(folder, RECORD))
    except ValueError as error:
        raise BundleError(f"{folder / RECORD} is damaged ({error}); copy it again") from error
    if not isinstance(record, dict) or not {"files", "positions", "silenced"} <= record.keys():
        raise BundleError(f"{folder / RECORD} is not the record of an export; copy it again")
    files = record["files"]
    fits = {
        "files": isinstance(files, dict)
        and files.keys() >= {MODEL, TOKENIZER}
        and all(name == Path(name).name and isinstance(sha, str) for name, sha in files.items()),
        "positions": type(record["positions"]) is int and record["positions"] > 0,
        "silenced": type(record["silenced"]) is bool,
    }
    for entry, sound in fits.items():
        if not sound:
            raise BundleError(
                f"{folder / RECORD} is damaged: {entry} is not what an export writes; copy the "
                "folder again"
            )
    return record


def _read(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        raise BundleError(
            f"cannot read {folder / name}: {error.strerror or error}; copy the folder again"
        ) from error
