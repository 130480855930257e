"""A model folder and a finished run for commands to work with."""

from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf

from kakehashi.commands.config import TrainConfig
from kakehashi.data.config import DataConfig, SplitConfig
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.data.tokenizer_config import TokenizerConfig
from kakehashi.decoding.config import DecodingConfig
from kakehashi.inference.save import save_bundle
from kakehashi.models.build import build_model
from kakehashi.models.config import RNNConfig, TransformerConfig
from kakehashi.training.config import CallbacksConfig, LoggerConfig, TrainerConfig


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


@pytest.fixture(scope="session")
def finished_run(small_corpus: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 40 updates over the small corpus, with the checkpoints of its last 3 validations."""
    from kakehashi.commands.run import run  # Lightning, seconds: only for the tests of it

    folder = tmp_path_factory.mktemp("runs")
    config = TrainConfig(
        name="small",
        data=DataConfig(
            name="small",
            kind="files",
            source_language="de",
            target_language="en",
            root=str(folder / "data"),
            train=SplitConfig(str(small_corpus.source_path), str(small_corpus.target_path)),
            valid_size=12,
            test_size=5,
        ),
        tokenizer=TokenizerConfig(vocab_size=420),
        model=TransformerConfig(
            encoder_layers=1, decoder_layers=1, d_model=32, d_feedforward=64, n_heads=2
        ),
        trainer=TrainerConfig(max_updates=40, validate_every=10, accelerator="cpu"),
        callbacks=CallbacksConfig(keep=3),
        logger=LoggerConfig(csv=False, tensorboard=False),
        decoding=DecodingConfig(beam=2, max_ratio=1.0, max_extra=2),
    )
    path = folder / "runs" / "small" / "2026-03-04_05-06-07-000008"
    path.mkdir(parents=True)
    OmegaConf.save(OmegaConf.structured(config), path / "config.yaml")
    run(config, path, ["name=small"])
    return path
