import pytest
import torch

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.inference.save import save_bundle
from kakehashi.inference.symbols import changed_symbols
from kakehashi.inference.translator import Translator
from kakehashi.models.build import build_model
from kakehashi.models.config import RNNConfig

SYMBOLS = {7: "{name}", 8: "%s", 9: "<b>"}


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ([5, 7, 8], [8, 6, 7], ""),
        ([5], [6], ""),
        ([7, 5, 8, 8], [8], "lacks {name} %s"),
        ([5], [9, 6, 9], "adds <b> <b>"),
        ([7], [8], "lacks {name}, adds %s"),
    ],
)
def test_what_became_of_the_symbols(source, translation, expected) -> None:
    assert changed_symbols(source, translation, SYMBOLS) == expected


def test_a_translator_warns_of_lost_symbols(small_corpus, tmp_path) -> None:
    tokenizer = Tokenizer.train(small_corpus.source, vocab_size=401, symbols=["{name}", "%s"])
    torch.manual_seed(3)
    model = build_model(RNNConfig(d_embedding=11, d_hidden=13, d_attention=7, d_maxout=11), 401)
    ordinary = [3, *tokenizer.ordinary_pieces()]
    folder = save_bundle(
        tmp_path / "model",
        model,
        tokenizer,
        source_language="de",
        target_language="en",
        max_length=53,
        decoding=DecodingConfig(beam=2, max_ratio=0.1, max_extra=2, batch_size=4),
        card="# card\n",
        metadata={},
    )
    translator = Translator.load(folder)
    translator.engine.model.output.restrict(torch.tensor(ordinary))
    found = translator.translate(["Hallo {name}, %s", "Hallo Welt"])
    assert "line 1: the translation lacks {name} %s" in found[0].warnings
    assert not any("lacks" in warning for warning in found[1].warnings)
