"""A tokenizer of the small corpus and a saved random model of each kind."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.inference.save import save_bundle
from kakehashi.models.build import build_model
from kakehashi.models.config import RNNConfig, TransformerConfig
from kakehashi.models.interface import TranslationModel
from kakehashi.symbols import EOS

CONFIGS = {
    "transformer": TransformerConfig(
        encoder_layers=1, decoder_layers=2, d_model=24, d_feedforward=37, n_heads=3
    ),
    "rnn": RNNConfig(d_embedding=14, d_hidden=17, d_attention=11, d_maxout=14),
}


@pytest.fixture(scope="session")
def tokenizer(small_corpus: Any) -> Tokenizer:
    lines = [*small_corpus.source, *small_corpus.target]
    return Tokenizer.train(lines, vocab_size=401)


@pytest.fixture(params=CONFIGS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def random_model(tokenizer: Tokenizer) -> Callable[[str], TranslationModel[Any]]:
    """A model that writes words (bytes would make most of its lines unprintable)."""

    def make(kind: str) -> TranslationModel[Any]:
        torch.manual_seed(7)
        model = build_model(CONFIGS[kind], tokenizer.vocab_size)
        pieces = tokenizer.pieces(range(tokenizer.vocab_size))
        words = [i for i, piece in enumerate(pieces) if i == EOS or not piece.startswith("<")]
        model.output.restrict(torch.tensor(words))
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() > 1:
                    parameter.mul_(2.0)
        return model.eval()

    return make


@pytest.fixture(scope="session")
def save(
    tokenizer: Tokenizer, random_model: Callable[[str], TranslationModel[Any]]
) -> Callable[..., Path]:
    """Save a random model into a folder; any argument of save_bundle can be given."""

    def save_into(folder: Path, kind: str = "transformer", **given: Any) -> Path:
        arguments = {
            "source_language": "de",
            "target_language": "en",
            "max_length": 53,
            "decoding": DecodingConfig(beam=3, max_ratio=0.1, max_extra=9, batch_size=5),
            "card": "# card\n",
            "metadata": {"corpus": "small", "pairs": 132},
        } | given
        return save_bundle(folder, random_model(kind), tokenizer, **arguments)

    return save_into


@pytest.fixture(scope="session")
def saved(save: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders of both models; nobody may change them."""
    root = tmp_path_factory.mktemp("bundles")
    return {kind: save(root / kind, kind) for kind in CONFIGS}
