"""A finished model from its folder, ready for use."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.ensemble import Ensemble
from kakehashi.errors import BundleError
from kakehashi.inference.folder import (
    CONFIG,
    WEIGHTS,
    bundle_folder,
    read_config,
    read_content,
    read_tokenizer,
)
from kakehashi.inference.settings import BundleConfig
from kakehashi.inference.weights import load_weights
from kakehashi.models.build import build_model
from kakehashi.models.interface import TranslationModel


@dataclass(frozen=True)
class Bundle:
    """A model ready for use (in evaluation mode), its tokenizer and its configuration."""

    model: TranslationModel[Any]
    tokenizer: Tokenizer
    config: BundleConfig


def load_bundle(path: str | Path, device: str | torch.device = "cpu") -> Bundle:
    """Load a model folder, or the one inside a run folder.

    Every file is checked against what was written: the tokenizer and the weights by their SHA-256,
    every tensor by name and shape.

    Raises:
        BundleError: for a missing, incomplete, damaged or mixed-up folder, naming the file and
            what to do.
    """
    folder = bundle_folder(path)
    config = read_config(folder)
    tokenizer = read_tokenizer(folder, config)
    content = read_content(folder, WEIGHTS)
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
    model.alignment = config.alignment
    return Bundle(model.to(device).eval().requires_grad_(False), tokenizer, config)


def together(bundles: Sequence[Bundle]) -> TranslationModel[Any]:
    """The one model there is, or an ensemble of several.

    Raises:
        BundleError: when they differ in tokenizer or languages.
    """
    first = bundles[0]
    for number, other in enumerate(bundles[1:], 2):
        if other.config.tokenizer_sha256 != first.config.tokenizer_sha256:
            raise BundleError(
                f"model 1 and model {number} of the ensemble have different tokenizers "
                f"(fingerprints {first.config.tokenizer_sha256[:12]} and "
                f"{other.config.tokenizer_sha256[:12]}): only models that share one can be asked "
                "for the same next piece, as those are that were trained on the same text with the "
                "same tokenizer settings"
            )
        languages = [(b.config.source_language, b.config.target_language) for b in (first, other)]
        if languages[0] != languages[1]:
            raise BundleError(
                f"model 1 translates {' to '.join(languages[0])} and model {number} "
                f"{' to '.join(languages[1])}: an ensemble is of one direction"
            )
    if len(bundles) == 1:
        return first.model
    return Ensemble([bundle.model for bundle in bundles]).eval()
