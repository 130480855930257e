"""Every weight has its labels, and those of a model's own translation are its own."""

from typing import Any

import pytest
import torch

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.inference.bundle import Bundle
from kakehashi.inference.settings import BundleConfig
from kakehashi.inference.translator import Translator
from kakehashi.insight.attention import attention
from kakehashi.models.build import build_model
from kakehashi.models.config import RNNConfig, TransformerConfig
from kakehashi.symbols import EOS

MODELS = {
    "transformer": TransformerConfig(d_model=24, d_feedforward=37, n_heads=3),
    "rnn": RNNConfig(d_embedding=14, d_hidden=17, d_attention=11, d_maxout=14),
}


@pytest.fixture(scope="module", params=MODELS)
def translator(request: pytest.FixtureRequest, small_corpus: Any) -> Translator:
    tokenizer = Tokenizer.train([*small_corpus.source, *small_corpus.target], vocab_size=401)
    torch.manual_seed(7)
    model = build_model(MODELS[request.param], tokenizer.vocab_size).eval()
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    words = [i for i, piece in enumerate(pieces) if i == EOS or not piece.startswith("<")]
    model.output.restrict(torch.tensor(words))
    config = BundleConfig(model.config, 401, "de", "en", 50, DecodingConfig(max_extra=9), "", "")
    return Translator.of(Bundle(model, tokenizer, config))


def test_attention_has_a_label_for_every_row_and_column(translator: Translator) -> None:
    view = attention(translator, "Der Hund schläft.", "The dog sleeps.")
    assert view.source[-1] == "</s>"
    assert view.target_input[0] == "<s>"
    assert view.target_output[-1] == "</s>"
    assert view.target_input[1:] == view.target_output[:-1]
    for weights in view.maps.cross:
        assert weights.shape[2:] == (len(view.target_output), len(view.source))
        assert weights.sum(-1).numpy() == pytest.approx(1.0, abs=1e-5)


def test_attention_follows_the_models_own_translation(translator: Translator) -> None:
    line = "Der Hund schläft."
    tokenizer = translator.tokenizer
    number = {piece: i for i, piece in enumerate(tokenizer.pieces(range(tokenizer.vocab_size)))}
    written = [number[piece] for piece in attention(translator, line).target_output]
    assert written[-1] == EOS
    decoded = tokenizer.decode(written)
    assert " ".join(decoded.splitlines()) == translator.translate([line])[0].text
