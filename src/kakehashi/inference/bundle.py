"""A finished model from its folder, ready for use."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from kakehashi.data.tokenizer import Tokenizer
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
    return Bundle(model.to(device).eval().requires_grad_(False), tokenizer, config)
