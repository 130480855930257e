"""A model folder: the files in it, where a path means one, and reading all but the weights.

``config.json`` (what it is), ``model.safetensors`` (the weights), ``tokenizer.model`` (the
pieces), ``README.md`` (the model card), and where the training text is known
``training_hashes.safetensors`` (which sentences were in it). Nothing in it is a program: no file is
unpickled. Nothing here needs torch.
"""

from pathlib import Path

from kakehashi.data.seen import TrainingSentences
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.errors import BundleError, TokenizerError
from kakehashi.inference.settings import BundleConfig, parse_settings

CONFIG, WEIGHTS, TOKENIZER, CARD = (
    "config.json",
    "model.safetensors",
    "tokenizer.model",
    "README.md",
)
TRAINING_HASHES = "training_hashes.safetensors"
EXPORTED = "export.json"
"""Stands in an exported folder, and in no model folder."""


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


def training_sentences(path: str | Path) -> TrainingSentences | None:
    """What a model folder, or the one inside a run folder, keeps of the training text; or None.

    Raises:
        BundleError: when there is no model folder.
        DataError: when the file is damaged.
    """
    file = bundle_folder(path) / TRAINING_HASHES
    return TrainingSentences.load(file) if file.is_file() else None


def read_config(folder: Path) -> BundleConfig:
    """What config.json says; raises BundleError where it is missing or damaged."""
    name = str(folder / CONFIG)
    if (folder / EXPORTED).is_file() and not (folder / WEIGHTS).is_file():
        raise BundleError(
            f"{folder} is an export for CTranslate2: add --engine ctranslate2 where the command "
            "has that, or give the model folder that it was made of"
        )
    if (folder / EXPORTED).is_file():
        raise BundleError(
            f"{folder} is an export for transformers, and its README.md says how to use it there; "
            "give the model folder that it was made of"
        )
    try:
        text = read_content(folder, CONFIG).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BundleError(f"{name} is damaged (not UTF-8); copy it again") from error
    return parse_settings(text, name)


def read_tokenizer(folder: Path, config: BundleConfig) -> Tokenizer:
    """The pieces, if they are those that the model was trained with; else raises BundleError."""
    name = str(folder / TOKENIZER)
    try:
        tokenizer = Tokenizer.from_bytes(read_content(folder, TOKENIZER))
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


def read_content(folder: Path, file: str) -> bytes:
    """A file's bytes; raises BundleError where it is missing or cannot be read."""
    try:
        return (folder / file).read_bytes()
    except FileNotFoundError as error:
        raise BundleError(
            f"the model folder {folder} lacks {file}; copy the whole folder again"
        ) from error
    except OSError as error:
        raise BundleError(f"cannot read {folder / file}: {error.strerror or error}") from error
