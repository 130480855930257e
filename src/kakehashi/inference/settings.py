"""config.json of a model folder: what stands in it, written and read back strictly."""

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import kakehashi
from kakehashi.decoding.config import DecodingConfig, decoding_config, decoding_settings
from kakehashi.errors import BundleError, ConfigError
from kakehashi.models.alignment import AlignmentChoice
from kakehashi.models.config import ModelConfig, model_config, model_settings

__all__ = ["AlignmentChoice", "BundleConfig", "dump_settings", "parse_settings"]

FORMAT_VERSION = 2
"""Raised whenever an older program could misread a newer folder."""

_NUMBERS = ("format_version", "vocab_size", "max_length")
_SECTIONS = ("model", "decoding", "alignment", "metadata")


@dataclass(frozen=True)
class BundleConfig:
    """Everything about a finished model that is not a weight or a piece."""

    model: ModelConfig
    vocab_size: int
    source_language: str
    target_language: str
    max_length: int
    """Most pieces of a training sentence, EOS included; longer input gets a warning."""
    decoding: DecodingConfig
    """The search this model is meant to be used with."""
    tokenizer_sha256: str
    weights_sha256: str
    alignment: AlignmentChoice = field(default_factory=AlignmentChoice)
    """Which attention is read as a word alignment; best measured, see `kakehashi probe alignment`,
    else the usual one."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Facts for people: corpus, licence, training, scores with signatures."""
    format_version: int = FORMAT_VERSION
    kakehashi_version: str = kakehashi.__version__


def dump_settings(config: BundleConfig) -> str:
    """The text of config.json.

    Raises:
        BundleError: when the metadata hold something that JSON cannot.
    """
    values: dict[str, Any] = {f.name: getattr(config, f.name) for f in fields(config)}
    first = ("format_version", "kakehashi_version")
    values = {name: values[name] for name in (*first, *(n for n in values if n not in first))}
    values["model"] = model_settings(config.model)
    values["decoding"] = decoding_settings(config.decoding)
    values["alignment"] = asdict(config.alignment)
    try:
        return json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise BundleError(f"the model's metadata cannot be written as JSON: {error}") from error


def parse_settings(text: str, name: str) -> BundleConfig:
    """Read config.json back; ``name`` is what to call the file in an error.

    Raises:
        BundleError: for anything that is not exactly what ``dump_settings`` writes.
    """
    try:
        values = json.loads(text)
    except ValueError as error:
        raise BundleError(f"{name} is damaged (not JSON: {error}); copy it again") from error
    if not isinstance(values, dict) or "format_version" not in values:
        raise BundleError(f"{name} does not describe a Kakehashi model: it has no format_version")
    if values["format_version"] != FORMAT_VERSION:
        raise BundleError(
            f"{name} has format version {values['format_version']!r}; this Kakehashi "
            f"{kakehashi.__version__} reads version {FORMAT_VERSION}: use the Kakehashi that "
            "wrote it, or a newer one"
        )
    expected = {f.name for f in fields(BundleConfig)}
    if missing := sorted(expected - set(values)):
        raise BundleError(f"{name} lacks {', '.join(missing)}")
    if unknown := sorted(set(values) - expected):
        raise BundleError(f"{name} has unknown entries: {', '.join(unknown)}")
    for entry, value in values.items():
        wanted = int if entry in _NUMBERS else dict if entry in _SECTIONS else str
        if type(value) is not wanted:
            raise BundleError(f"{name}: {entry} is {value!r}, not of type {wanted.__name__}")
    try:
        values["model"] = model_config(values["model"])
        values["decoding"] = decoding_config(values["decoding"])
        values["alignment"] = _alignment(values["alignment"])
    except (ConfigError, TypeError) as error:
        raise BundleError(f"{name}: {error}") from error
    return BundleConfig(**values)


def _alignment(values: dict[str, Any]) -> AlignmentChoice:
    """Raises ConfigError for what is no choice."""
    numbers = {name: value for name, value in values.items() if type(value) is int}
    if sorted(values) != ["head", "layer", "shift"] or values not in (
        numbers,
        {**numbers, "head": None},
    ):
        raise ConfigError(
            f"alignment is {values!r}; it has a layer, a head (or null) and a shift, all numbers"
        )
    return AlignmentChoice(**values)
