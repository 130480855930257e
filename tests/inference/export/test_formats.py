"""Every kind of Transformer reads the same in the other formats, from the disk."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.inference.export.conftest import ONLY_CTRANSLATE2, VARIANTS, Make

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.errors import ConfigError
from kakehashi.inference.ctranslate2_engine import CTranslate2Engine
from kakehashi.inference.engine import Engine
from kakehashi.inference.export.huggingface_engine import HuggingFaceEngine
from kakehashi.inference.export.to_ctranslate2 import write_ctranslate2
from kakehashi.inference.export.to_huggingface import write_huggingface
from kakehashi.inference.settings import BundleConfig
from kakehashi.inference.torch_engine import TorchEngine
from kakehashi.models.alignment import AlignmentChoice
from kakehashi.models.config import ScoreConfig


def config_of(model: Any) -> BundleConfig:
    return BundleConfig(
        model.config, model.vocab_size, "de", "en", 16, DecodingConfig(beam=2), "", ""
    )


def ctranslate2_engine(folder: Path, model: Any, tokenizer: Tokenizer) -> Engine:
    write_ctranslate2(folder, model, tokenizer, quantization="float32", positions=64)
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    return CTranslate2Engine(folder, pieces, positions=64, silenced=True)


def huggingface_engine(folder: Path, model: Any, tokenizer: Tokenizer) -> Engine:
    write_huggingface(folder, model, tokenizer, config_of(model))
    return HuggingFaceEngine(folder)


def assert_same(exported: Engine, model: Any, tokenizer: Tokenizer, corpus: Any) -> None:
    rows = tokenizer.encode_batch(corpus.source[:5])
    targets = tokenizer.encode_batch(corpus.target[3:8])
    original = TorchEngine(model)
    found, expected = exported.follow(rows, targets), original.follow(rows, targets)
    for ours, theirs in zip(expected, found, strict=True):
        assert theirs.log_probabilities == pytest.approx(ours.log_probabilities, abs=3e-5)
    greedy = DecodingConfig(beam=1, max_ratio=0.1, max_extra=6)
    ids = [[h[0].ids for h in e.search(rows, config=greedy)] for e in (original, exported)]
    assert ids[0] == ids[1]
    assert len(set(ids[0])) > 1


@pytest.mark.parametrize("variant", [*VARIANTS, *ONLY_CTRANSLATE2])
def test_ctranslate2_computes_the_same(
    variant: str, make: Make, tokenizer: Tokenizer, small_corpus: Any, tmp_path: Path
) -> None:
    model = make(**(VARIANTS | ONLY_CTRANSLATE2)[variant])
    assert_same(ctranslate2_engine(tmp_path, model, tokenizer), model, tokenizer, small_corpus)


@pytest.mark.slow  # to import transformers takes longer than all other tests of this folder
@pytest.mark.parametrize("variant", VARIANTS)
def test_transformers_computes_the_same(
    variant: str, make: Make, tokenizer: Tokenizer, small_corpus: Any, tmp_path: Path
) -> None:
    model = make(**VARIANTS[variant])
    engine = huggingface_engine(tmp_path, model, tokenizer)
    assert_same(engine, model, tokenizer, small_corpus)


@pytest.mark.slow
def test_transformers_finds_the_same_with_a_beam(
    make: Make, tokenizer: Tokenizer, small_corpus: Any, tmp_path: Path
) -> None:
    """At the limit too, where some have ended and some have not."""
    model = make(norm_position="post", bias=True)
    exported = huggingface_engine(tmp_path, model, tokenizer)
    rows = tokenizer.encode_batch(small_corpus.source[:9])
    for extra in (2, 7):
        config = DecodingConfig(beam=3, max_ratio=0.1, max_extra=extra)
        engines = (TorchEngine(model), exported)
        ours, theirs = (e.search(rows, config=config, n_best=2) for e in engines)
        for a, b in zip(ours, theirs, strict=True):
            assert [(h.ids, h.finished) for h in a] == [(h.ids, h.finished) for h in b]


@pytest.mark.parametrize("score", ["scaled_dot", "general"])
def test_ctranslate2_looks_with_the_head_that_was_chosen(
    score: str, make: Make, tokenizer: Tokenizer, small_corpus: Any, tmp_path: Path
) -> None:
    model = make(decoder_layers=2, bias=True, score=ScoreConfig(score))
    model.alignment = AlignmentChoice(1, 2, 1)
    write_ctranslate2(tmp_path, model, tokenizer, quantization="float32", positions=64)
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    exported = CTranslate2Engine(tmp_path, pieces, positions=64, silenced=True, shift=1)
    rows = tokenizer.encode_batch(small_corpus.source[:3])
    targets = tokenizer.encode_batch(small_corpus.target[:3])
    ours, theirs = (e.follow(rows, targets, attending=True) for e in (TorchEngine(model), exported))
    for a, b in zip(ours, theirs, strict=True):
        assert a.attention is not None and b.attention is not None
        np.testing.assert_allclose(b.attention, a.attention, atol=1e-5)
        assert b.log_probabilities == pytest.approx(a.log_probabilities, abs=1e-4)


def test_ctranslate2_looks_where_the_original_looks(
    make: Make, tokenizer: Tokenizer, small_corpus: Any, tmp_path: Path
) -> None:
    rows = tokenizer.encode_batch(small_corpus.source[:5])
    targets = [[], *tokenizer.encode_batch(small_corpus.target[:4])]
    for layers in (1, 2, 3):
        model = make(decoder_layers=layers, d_feedforward=12)
        folder = tmp_path / str(layers)
        folder.mkdir()
        engines = (TorchEngine(model), ctranslate2_engine(folder, model, tokenizer))
        ours, theirs = (engine.follow(rows, targets, attending=True) for engine in engines)
        for a, b in zip(ours, theirs, strict=True):
            assert a.attention is not None and b.attention is not None
            np.testing.assert_allclose(b.attention, a.attention, atol=1e-5)


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        ({"norm": "rms"}, "root mean square"),
        ({"activation": "swiglu"}, "gated"),
        ({"score": ScoreConfig("additive")}, "additive score"),
    ],
)
def test_transformers_refuses_by_name(
    variant: dict[str, Any], said: str, make: Make, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    model = make(**variant)
    with pytest.raises(ConfigError, match=said):
        write_huggingface(tmp_path, model, tokenizer, config_of(model))
    assert not list(tmp_path.iterdir())


def test_what_no_other_runtime_has_is_refused(
    make: Make, recurrent: Any, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    write: Callable[..., None] = write_ctranslate2
    with pytest.raises(ConfigError, match=r"recurrent model.*--engine torch"):
        write(tmp_path, recurrent, tokenizer, quantization="float32")
    additive = make(score=ScoreConfig("additive"))
    with pytest.raises(ConfigError, match=re.escape("w^T tanh(q + k)")):
        write(tmp_path, additive, tokenizer, quantization="float32")


def test_writing_leaves_the_model_as_it_was(
    make: Make, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    """CTranslate2 quantises in place."""
    model = make()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    write_ctranslate2(tmp_path, model, tokenizer, quantization="int8", positions=64)
    assert all(torch.equal(before[name], now) for name, now in model.state_dict().items())
