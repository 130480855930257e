"""Random Transformers of any kind that end their sentences, and their folders."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.inference import save
from kakehashi.models.build import build_model
from kakehashi.models.config import ModelConfig, RNNConfig, ScoreConfig, TransformerConfig
from kakehashi.models.interface import TranslationModel
from kakehashi.symbols import EOS

VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "post-norm, biases": {"norm_position": "post", "bias": True},
    "pre-norm, biases, gelu, general, untied": {
        "bias": True,
        "activation": "gelu",
        "score": ScoreConfig("general"),
        "tie_embeddings": False,
    },
    "post-norm, gelu, dot, untied": {
        "norm_position": "post",
        "activation": "gelu",
        "score": ScoreConfig("dot"),
        "tie_embeddings": False,
    },
}
"""What every format can hold."""
ONLY_CTRANSLATE2: dict[str, dict[str, Any]] = {
    "rms norm, swiglu": {"norm": "rms", "activation": "swiglu"},
    "post-norm, rms norm, swiglu, biases": {
        "norm": "rms",
        "norm_position": "post",
        "activation": "swiglu",
        "bias": True,
    },
}

Make = Callable[..., TranslationModel[Any]]


@pytest.fixture(scope="session")
def make(tokenizer: Tokenizer) -> Make:
    """A model of which no number is a special one (no zeros, no ones), and that writes words."""

    def make_model(config: ModelConfig | None = None, **variant: Any) -> TranslationModel[Any]:
        sizes = {"encoder_layers": 1, "decoder_layers": 2, "d_model": 24, "d_feedforward": 38}
        torch.manual_seed(3)
        config = config or TransformerConfig(**(sizes | {"n_heads": 3} | variant))
        model = build_model(config, tokenizer.vocab_size)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
        pieces = tokenizer.pieces(range(tokenizer.vocab_size))
        model.output.restrict(
            torch.tensor([i for i, p in enumerate(pieces) if i == EOS or not p.startswith("<")])
        )
        model.output.silence[EOS] = 1.5
        return model.eval()

    return make_model


@pytest.fixture(scope="session")
def save_model(tokenizer: Tokenizer) -> Callable[..., Path]:
    """Save a model into a folder."""

    def save_into(folder: Path, model: TranslationModel[Any], **decoding: Any) -> Path:
        return save.save_bundle(
            folder,
            model,
            tokenizer,
            source_language="de",
            target_language="en",
            max_length=60,
            decoding=DecodingConfig(
                **({"beam": 2, "max_ratio": 0.2, "max_extra": 5, "batch_size": 64} | decoding)
            ),
            card="---\nlibrary_name: kakehashi\n---\n\n# A card\n\n## How to use it\n\nOld words.\n"
            "\n## Scores\n\nNone.\n",
            metadata={},
        )

    return save_into


@pytest.fixture(scope="session")
def recurrent(make: Make) -> TranslationModel[Any]:
    return make(RNNConfig(d_embedding=14, d_hidden=17, d_attention=11, d_maxout=14))
