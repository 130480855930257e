"""A model folder for commands to work with."""

from pathlib import Path
from typing import Any

import pytest
import torch

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.inference import save_bundle
from kakehashi.models.build import build_model
from kakehashi.models.config import RNNConfig


@pytest.fixture(scope="session")
def model_folder(small_corpus: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small random recurrent model, German to English."""
    torch.manual_seed(11)
    tokenizer = Tokenizer.train([*small_corpus.source, *small_corpus.target], vocab_size=401)
    model = build_model(RNNConfig(d_embedding=14, d_hidden=17, d_attention=11, d_maxout=14), 401)
    return save_bundle(
        tmp_path_factory.mktemp("model") / "model",
        model,
        tokenizer,
        source_language="de",
        target_language="en",
        max_length=53,
        decoding=DecodingConfig(beam=3, max_ratio=0.1, max_extra=5, batch_size=4),
        card="# card\n",
        metadata={},
    )
