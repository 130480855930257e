"""A finished model as a folder, and getting it back.

``config.json`` (what it is), ``model.safetensors`` (the weights), ``tokenizer.model`` (the
pieces), ``README.md`` (the model card), and where the training text is known
``training_hashes.safetensors`` (which sentences were in it). Nothing in it is a program: no file is
unpickled.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from kakehashi.data.seen import TrainingSentences
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.errors import BundleError, TokenizerError
from kakehashi.inference.settings import BundleConfig, parse_settings
from kakehashi.inference.weights import load_weights
from kakehashi.models.build import build_model
from kakehashi.models.interface import TranslationModel

CONFIG, WEIGHTS, TOKENIZER, CARD = (
    "config.json",
    "model.safetensors",
    "tokenizer.model",
    "README.md",
)
TRAINING_HASHES = "training_hashes.safetensors"


@dataclass(frozen=True)
class Bundle:
    """A model ready for use (in evaluation mode), its tokenizer and its configuration."""

    model: TranslationModel[Any]
    tokenizer: Tokenizer
    config: BundleConfig


def bundle_folder(path: str | Path) -> Path:
    """The model folder that a path means: itself, or ``model`` in a training run's folder.

    Raises:
        BundleError: when there is neither; says what was found instead.
    """
    path = Path(path).expanduser()
    for folder in (path, path / "model"):
        if (folder / CONFIG).is_file():
            return folder
    if not path.exists():
        raise BundleError(
            f"there is no model folder {path} (looked from {Path.cwd()}); a training run writes "
            "one to its run folder when it ends"
        )
    if not path.is_dir():
        raise BundleError(f"{path} is a file; give the model folder that holds {CONFIG}")
    raise BundleError(
        f"{path} is not a model folder: it holds no {CONFIG} (a run folder holds its model, in "
        "model/, only once the run has finished)"
    )


def load_bundle(path: str | Path, device: str | torch.device = "cpu") -> Bundle:
    """Load a model folder, or the one inside a run folder.

    Every file is checked against what was written: the tokenizer and the weights by their SHA-256,
    every tensor by name and shape.

    Raises:
        BundleError: for a missing, incomplete, damaged or mixed-up folder, naming the file and
            what to do.
    """
    folder = bundle_folder(path)
    config = _read_config(folder)
    tokenizer = _read_tokenizer(folder, config)
    content = _read(folder, WEIGHTS)
    name = str(folder / WEIGHTS)
    # Drawing the first weights (which are then replaced) must not disturb the caller's numbers.
    with torch.random.fork_rng(devices=[]):
        model = build_model(config.model, config.vocab_size)
    load_weights(model, content, name)
    if hashlib.sha256(content).hexdigest() != config.weights_sha256:
        raise BundleError(
            f"{name} is damaged or from another model: its SHA-256 is not the one in {CONFIG}; "
            "copy the folder again"
        )
    return Bundle(model.to(device).eval().requires_grad_(False), tokenizer, config)


def training_sentences(path: str | Path) -> TrainingSentences | None:
    """What a model folder, or the one inside a run folder, keeps of the training text; or None.

    Raises:
        BundleError: when there is no model folder.
        DataError: when the file is damaged.
    """
    file = bundle_folder(path) / TRAINING_HASHES
    return TrainingSentences.load(file) if file.is_file() else None


def _read_config(folder: Path) -> BundleConfig:
    name = str(folder / CONFIG)
    try:
        text = _read(folder, CONFIG).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BundleError(f"{name} is damaged (not UTF-8); copy it again") from error
    return parse_settings(text, name)


def _read_tokenizer(folder: Path, config: BundleConfig) -> Tokenizer:
    name = str(folder / TOKENIZER)
    try:
        tokenizer = Tokenizer.from_bytes(_read(folder, TOKENIZER))
    except TokenizerError as error:
        raise BundleError(f"{name} is damaged ({error}); copy the folder again") from error
    if tokenizer.fingerprint != config.tokenizer_sha256:
        raise BundleError(
            f"{name} is another tokenizer than the model was trained with (fingerprint "
            f"{tokenizer.fingerprint[:12]}, {CONFIG} says {config.tokenizer_sha256[:12]}); copy "
            "the folder again"
        )
    if tokenizer.vocab_size != config.vocab_size:
        raise BundleError(
            f"{name} has {tokenizer.vocab_size:,} pieces, {CONFIG} says {config.vocab_size:,}"
        )
    return tokenizer


def _read(folder: Path, file: str) -> bytes:
    try:
        return (folder / file).read_bytes()
    except FileNotFoundError as error:
        raise BundleError(
            f"the model folder {folder} lacks {file}; copy the whole folder again"
        ) from error
    except OSError as error:
        raise BundleError(f"cannot read {folder / file}: {error.strerror or error}") from error
