"""Evaluation and the heat map on the reference inputs of their kinds."""

import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
from matplotlib.figure import Figure

from kakehashi.data.reading import read_lines
from kakehashi.inference.translator import Translator
from kakehashi.insight.attention import attention
from kakehashi.insight.fonts import _characters, fonts_for
from kakehashi.insight.heatmap import heatmap


def score(kakehashi: Any, folder: Path, hypothesis: str, reference: str, language: str) -> Any:
    words = ["evaluate", "--hypothesis", folder / hypothesis, "--reference", folder / reference]
    return kakehashi(*words, "--target-language", language)


def test_unequal_counts(kakehashi: Any, cases: Path) -> None:
    ended = score(kakehashi, cases, "evaluate_two.hyp", "evaluate_three.ref", "en")
    assert (ended.status, ended.out) == (1, b"")
    for part in ("evaluate_two.hyp", "evaluate_three.ref", "2", "3"):
        assert part in ended.err


@pytest.mark.parametrize(
    ("name", "language", "tokenizer"),
    [("zh", "zh", "zh"), ("sub", "en", "13a"), ("zh", "en", "13a")],
)
def test_figures_are_sacrebleus(
    kakehashi: Any, cases: Path, name: str, language: str, tokenizer: str
) -> None:
    ended = score(kakehashi, cases, f"{name}.hyp", f"{name}.ref", language)
    assert ended.status == 0, ended.err
    hypotheses, references = (read_lines(cases / f"{name}.{part}") for part in ("hyp", "ref"))
    expected = sacrebleu.corpus_bleu(hypotheses, [references], tokenize=tokenizer)
    bleu = next(line for line in ended.out.decode().split("\n") if line.startswith("BLEU"))
    assert bleu.startswith(f"BLEU {expected.score:.2f}")
    assert f"tok:{tokenizer}" in bleu
    if (name, language) == ("zh", "zh"):
        assert expected.score > sacrebleu.corpus_bleu(hypotheses, [references]).score


def names(figure: Figure) -> tuple[list[str], list[str]]:
    axes = figure.axes[0]
    columns, rows = axes.get_xticklabels(), axes.get_yticklabels()
    return [label.get_text() for label in columns], [label.get_text() for label in rows]


def test_labels_without_a_box(cases: Path, tmp_path: Path, figures: list[Figure]) -> None:
    labels = read_lines(cases / "attention_labels.txt")
    assert len(labels) == 4
    values = np.random.default_rng(3).dirichlet(np.ones(4), 3)
    # matplotlib warns of a character without a glyph, and here a warning is an error.
    heatmap(values, labels, labels[:3], tmp_path / "map.png")
    columns, rows = names(figures[0])
    assert (len(columns), rows) == (4, columns[:3])
    families, missing = fonts_for(labels)
    for label, shown in zip(labels, columns, strict=True):
        kept = [c for c in label if c not in missing and unicodedata.category(c) != "Cf"]
        assert [c for c in shown if c in kept] == kept
        assert all(f"U+{ord(c):04X}" in shown for c in label if c in missing)
    from matplotlib import font_manager

    drawable = frozenset().union(*(_characters(font_manager.findfont(f)) for f in families))
    assert all(ord(c) in drawable for label in columns for c in label)
    drawn = np.asarray(figures[0].axes[0].collections[0].get_array())
    assert np.array_equal(drawn, values)
    assert drawn.sum(-1) == pytest.approx(np.ones(3))


def test_the_command_draws_every_label(
    kakehashi: Any, folder: Path, cases: Path, tmp_path: Path, figures: list[Figure]
) -> None:
    translator = Translator.load(folder)
    for number, text in enumerate(read_lines(cases / "attention_labels.txt")):
        picture = tmp_path / f"{number}.png"
        # What a random model says itself is long and dear to draw.
        ended = kakehashi("heatmap", folder, "--text", text, "--target", text, "-o", picture)
        assert ended.status == 0, ended.err
        assert picture.read_bytes().startswith(b"\x89PNG")
        weights = np.asarray(figures[-1].axes[0].collections[0].get_array())
        view = attention(translator, text, text)
        assert weights.shape == (len(view.target_output), len(view.source))
        assert weights.sum(-1) == pytest.approx(np.ones(len(weights)), abs=1e-5)


def test_the_map_of_a_learnt_word_order_is_a_diagonal(
    learnt: Path, kakehashi: Any, tmp_path: Path, figures: list[Figure]
) -> None:
    """Rows are the translation, columns the source: here each word looks at its own."""
    ended = kakehashi(
        "heatmap", learnt, "--text", "mond haus baum hund", "-o", tmp_path / "map.svg"
    )
    assert ended.status == 0, ended.err
    columns, rows = names(figures[0])
    assert "".join(columns[:-1]).replace("·", " ").strip() == "mond haus baum hund"
    assert "".join(rows[:-1]).replace("·", " ").strip() == "moon house tree dog"


def test_what_is_too_long_or_blank_for_a_map_is_said(
    kakehashi: Any, folder: Path, tmp_path: Path
) -> None:
    for text, message in (("hund " * 500, "give one sentence"), (" \u200b", "no visible")):
        ended = kakehashi("heatmap", folder, "--text", text, "-o", tmp_path / "map.png")
        assert ended.status == 1
        assert message in ended.err
        assert not list(tmp_path.iterdir())
