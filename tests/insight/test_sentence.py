"""Which attention is drawn, and under which names."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.errors import ConfigError
from kakehashi.inference.bundle import Bundle
from kakehashi.inference.settings import BundleConfig
from kakehashi.inference.torch_engine import TorchEngine
from kakehashi.inference.translator import Translator
from kakehashi.insight import sentence
from kakehashi.insight.attention import attention
from kakehashi.insight.sentence import draw_attention
from kakehashi.models.alignment import AlignmentChoice
from kakehashi.models.build import build_model
from kakehashi.models.config import ModelConfig, RNNConfig, TransformerConfig

LINE, TARGET = "Der Hund schläft.", "The dog sleeps."


def translator(model: ModelConfig, corpus: Any) -> Translator:
    tokenizer = Tokenizer.train([*corpus.source, *corpus.target], vocab_size=401)
    config = BundleConfig(
        model, 401, "de", "en", 53, DecodingConfig(beam=2, max_ratio=0.1, max_extra=4), "", ""
    )
    return Translator.of(Bundle(build_model(model, 401).eval(), tokenizer, config))


@pytest.fixture(scope="module")
def transformer(small_corpus: Any) -> Translator:
    torch.manual_seed(3)
    model = TransformerConfig(
        encoder_layers=1, decoder_layers=3, d_model=24, d_feedforward=37, n_heads=3
    )
    return translator(model, small_corpus)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The panels of each figure, and its title and number of panels side by side."""
    calls: list[Any] = []
    monkeypatch.setattr(
        sentence, "heatmaps", lambda panels, paths, **k: calls.append((panels, paths, k))
    )
    return calls


@pytest.mark.parametrize(
    ("layer", "head", "title"),
    [
        (None, None, "layer 2 of 3, mean of 3 heads"),
        (1, None, "layer 1 of 3, mean of 3 heads"),
        (3, 2, "layer 3 of 3, head 2 of 3"),
    ],
)
def test_layer_and_head(
    transformer: Translator, drawn: list[Any], layer: int | None, head: int | None, title: str
) -> None:
    shown = draw_attention(transformer, LINE, "map.png", targets=TARGET, layer=layer, head=head)
    (panel,), _, settings = drawn[0]
    weights, source, target = panel.weights, panel.columns, panel.rows
    assert shown == settings["title"]
    assert title in shown
    maps = attention(transformer, LINE, TARGET).maps.cross
    chosen = maps[1 if layer is None else layer - 1][0]
    expected = chosen.mean(0) if head is None else chosen[head - 1]
    assert np.allclose(weights, expected.numpy())
    assert weights.shape == (len(target), len(source))
    assert weights.sum(-1) == pytest.approx(np.ones(len(target)), abs=1e-5)
    assert (source[0][0], source[-1], target[-1]) == ("·", "</s>", "</s>")
    assert "".join(target[:-1]).replace("·", " ").strip() == TARGET


@pytest.mark.parametrize(
    ("options", "head", "shift"),
    [({}, 2, 1), ({"head": "mean"}, None, 0), ({"layer": 1}, None, 0), ({"head": 3}, 3, 0)],
)
def test_what_is_not_asked_for_is_as_the_model_aligns(
    transformer: Translator,
    drawn: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    head: int | None,
    shift: int,
) -> None:
    assert isinstance(transformer.engine, TorchEngine)
    choice = AlignmentChoice(layer=1, head=2, shift=1)
    monkeypatch.setattr(transformer.engine.model, "alignment", choice)
    draw_attention(transformer, LINE, "map.png", targets=TARGET, **options)
    (panel,), _, _ = drawn[0]
    steps = attention(transformer, LINE, TARGET).maps.cross[0][0]
    rows = (steps.mean(0) if head is None else steps[head - 1]).numpy()
    assert np.allclose(panel.weights, [*rows[shift:], *rows[len(rows) - shift :]])


@pytest.mark.parametrize(
    ("options", "message"),
    [({"layer": 4}, "1 to 3"), ({"head": 4}, "1 to 3"), ({"layer": 0}, "there is no 0")],
)
def test_what_the_model_does_not_have(
    transformer: Translator, options: dict[str, int], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        draw_attention(transformer, LINE, "map.png", targets=TARGET, **options)


def test_the_recurrent_model_has_one_map(
    small_corpus: Any, drawn: list[Any], tmp_path: Path
) -> None:
    model = RNNConfig(d_embedding=14, d_hidden=17, d_attention=11, d_maxout=14)
    shown = draw_attention(translator(model, small_corpus), LINE, tmp_path / "map.png")
    assert shown == "cross-attention, layer 1 of 1, one head"
    (panel,) = drawn[0][0]
    assert panel.weights.shape == (len(panel.rows), len(panel.columns))
    with pytest.raises(ConfigError, match="no encoder self-attention"):
        draw_attention(translator(model, small_corpus), LINE, "map.png", kind="encoder")


def test_draws_a_file(transformer: Translator, tmp_path: Path) -> None:
    draw_attention(transformer, LINE, tmp_path / "map.png", targets=TARGET)
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ConfigError, match=r"map\.txt"):
        draw_attention(transformer, LINE, tmp_path / "map.txt")


def test_all_heads_are_panels_with_the_same_labels(
    transformer: Translator, drawn: list[Any]
) -> None:
    shown = draw_attention(transformer, LINE, "map.png", targets=TARGET, head="all", layer=1)
    panels, _, settings = drawn[0]
    maps = attention(transformer, LINE, TARGET).maps.cross[0][0]
    assert [panel.title for panel in panels] == ["head 1", "head 2", "head 3"]
    for panel, weights in zip(panels, maps, strict=True):
        assert np.allclose(panel.weights, weights.numpy())
    assert shown == "cross-attention, layer 1 of 3, all 3 heads"
    assert settings["across"] is None


def test_several_sentences_are_lettered_panels(transformer: Translator, drawn: list[Any]) -> None:
    lines = [LINE, "Die Katze."]
    draw_attention(transformer, lines, ["a.png", "b.svg"], targets=[TARGET, "The cat."])
    panels, paths, _ = drawn[0]
    assert [panel.title for panel in panels] == ["(a)", "(b)"]
    assert paths == ["a.png", "b.svg"]
    assert "".join(panels[1].columns[:-1]).replace("·", " ").strip() == "Die Katze."
    draw_attention(transformer, lines, "a.png", targets=[TARGET, "The cat."], head="all")
    panels, _, settings = drawn[1]
    assert [panel.title for panel in panels[:4]] == [
        *("(a) head 1", "(a) head 2", "(a) head 3", "(b) head 1")
    ]
    assert settings["across"] == 3
    with pytest.raises(ConfigError, match="2 sentences and 1 translations"):
        draw_attention(transformer, lines, "a.png", targets=TARGET)


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_self_attention_has_its_own_labels_on_both_sides(
    transformer: Translator, drawn: list[Any], kind: Any
) -> None:
    view = attention(transformer, LINE, TARGET)
    shown = draw_attention(transformer, LINE, "map.png", targets=TARGET, kind=kind)
    (panel,) = drawn[0][0]
    maps = getattr(view.maps, kind)
    assert shown == f"{kind} self-attention, layer {len(maps)} of {len(maps)}, mean of 3 heads"
    assert np.allclose(panel.weights, maps[-1][0].mean(0).numpy())
    pieces = view.source if kind == "encoder" else view.target_input
    assert panel.rows == panel.columns
    assert len(panel.rows) == len(pieces)


@pytest.mark.parametrize("kind", ["cross", "encoder", "decoder"])
def test_words_are_joined_and_rows_stay_distributions(
    transformer: Translator, drawn: list[Any], kind: Any
) -> None:
    draw_attention(transformer, LINE, "map.png", targets=TARGET, kind=kind, words=True)
    (panel,) = drawn[0][0]
    source, target = ("Der", "Hund", "schläft", "."), ("The", "dog", "sleeps", ".")
    expected = {
        "cross": ((*target, "</s>"), (*source, "</s>")),
        "encoder": ((*source, "</s>"), (*source, "</s>")),
        "decoder": (("<s>", *target), ("<s>", *target)),
    }
    assert (panel.rows, panel.columns) == expected[kind]
    assert panel.weights.sum(-1) == pytest.approx(np.ones(len(panel.rows)), abs=1e-5)
