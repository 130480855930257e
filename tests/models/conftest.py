"""Small models of every kind, and sentences to feed them: V = 29, sides of prime lengths."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kakehashi.models.build import build_model
from kakehashi.models.config import ModelConfig, RNNConfig, ScoreConfig, TransformerConfig
from kakehashi.models.interface import TranslationModel
from kakehashi.symbols import BOS, EOS, PAD

V = 29
SCORES = ("dot", "scaled_dot", "general", "additive")

TRANSFORMERS: dict[str, dict[str, Any]] = {
    "pre-rms-relu": {"norm_position": "pre", "norm": "rms", "activation": "relu", "bias": False},
    "post-layer-gelu-bias": {
        "norm_position": "post",
        "norm": "layer",
        "activation": "gelu",
        "bias": True,
        "tie_embeddings": False,
    },
    "pre-layer-swiglu-bias": {
        "norm_position": "pre",
        "norm": "layer",
        "activation": "swiglu",
        "bias": True,
    },
    "post-rms-swiglu": {
        "norm_position": "post",
        "norm": "rms",
        "activation": "swiglu",
        "bias": False,
        "tie_embeddings": False,
    },
}
RNNS: dict[str, dict[str, Any]] = {
    "tied": {"d_maxout": 11, "tie_embeddings": True},
    "untied": {"d_maxout": 5, "tie_embeddings": False},
}


@dataclass(frozen=True)
class Sentences:
    """A padded batch."""

    source: Tensor
    allowed: Tensor
    target: Tensor

    def double_width(self) -> "Sentences":
        """The same sentences with more padding behind them, on both sides."""
        more_source = nn.functional.pad(self.source, (0, 6), value=PAD)
        more_allowed = nn.functional.pad(self.allowed, (0, 6), value=False)
        more_target = nn.functional.pad(self.target, (0, 4), value=PAD)
        return Sentences(more_source, more_allowed, more_target)


MakeModel = Callable[..., TranslationModel[Any]]


def _make_model(kind: str, variant: str, score: str, **changes: Any) -> TranslationModel[Any]:
    config: ModelConfig
    if kind == "transformer":
        settings = {**TRANSFORMERS[variant], **changes}
        config = TransformerConfig(
            encoder_layers=2,
            decoder_layers=2,
            d_model=30,
            d_feedforward=17,
            n_heads=3,
            score=ScoreConfig(score),
            **settings,
        )
    else:
        settings = {**RNNS[variant], **changes}
        config = RNNConfig(
            d_embedding=11, d_hidden=13, d_attention=7, score=ScoreConfig(score), **settings
        )
    model = build_model(config, V)
    with torch.no_grad():  # what starts as zeros or ones would hide mistakes
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))
            elif not parameter.any():
                nn.init.xavier_uniform_(parameter)
    return model.double().eval()


@pytest.fixture
def make_model() -> MakeModel:
    """``make_model(kind, variant, score, **changes)``: float64, evaluating, nothing trivial."""
    return _make_model


DEFAULTS = [("transformer", "pre-rms-relu", score) for score in SCORES] + [
    ("rnn", "tied", score) for score in SCORES
]
SOME = [
    *DEFAULTS,
    ("transformer", "post-layer-gelu-bias", "additive"),
    ("transformer", "pre-layer-swiglu-bias", "general"),
    ("transformer", "post-rms-swiglu", "dot"),
    ("rnn", "untied", "scaled_dot"),
]


def _names(models: list[tuple[str, str, str]]) -> list[str]:
    return ["-".join(parts) for parts in models]


@pytest.fixture(params=SOME, ids=_names(SOME))
def model(request: pytest.FixtureRequest) -> TranslationModel[Any]:
    """Both models with every score, and each variant with one of them."""
    torch.manual_seed(7)
    return _make_model(*request.param)


@pytest.fixture(params=DEFAULTS, ids=_names(DEFAULTS))
def default_model(request: pytest.FixtureRequest) -> TranslationModel[Any]:
    """The default variant of both models with every score, for what does not hang on variants."""
    torch.manual_seed(7)
    return _make_model(*request.param)


def _draw(generator: torch.Generator, lengths: list[int], n: int) -> Sentences:
    m = max(lengths)
    source = torch.randint(4, V, (len(lengths), m), generator=generator)
    allowed = torch.arange(m)[None, :] < torch.tensor(lengths)[:, None]
    source[torch.arange(len(lengths)), torch.tensor(lengths) - 1] = EOS
    source[~allowed] = PAD
    target = torch.randint(4, V, (len(lengths), n), generator=generator)
    target[:, 0] = BOS
    return Sentences(source, allowed, target)


@pytest.fixture
def sentences() -> Sentences:
    """Three sentences of 7, 4 and 1 source tokens; 5 target tokens each."""
    return _draw(torch.Generator().manual_seed(11), [7, 4, 1], 5)


@pytest.fixture
def draw_sentences() -> Callable[[list[int], int], Sentences]:
    """``draw_sentences(source lengths, target length)``."""
    generator = torch.Generator().manual_seed(13)
    return lambda lengths, n: _draw(generator, lengths, n)
