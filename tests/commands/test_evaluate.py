"""`kakehashi evaluate`: a model, or a file of translations, against references."""

import json
from pathlib import Path
from typing import Any

import pytest

from kakehashi.data.reading import read_lines, write_lines
from kakehashi.evaluation import corpus_scores
from kakehashi.inference import Translator


def test_a_models_translations_are_scored_and_kept(
    kakehashi: Any, model_folder: Path, small_corpus: Any, tmp_path: Path
) -> None:
    output = tmp_path / "out.en"
    words = ["evaluate", model_folder, "--source", small_corpus.source_path]
    words += ["--reference", small_corpus.target_path, "-o", output, "--beam", 2]
    ended = kakehashi(*words)
    assert ended.status == 0
    translations = Translator.load(model_folder).translate(small_corpus.source, beam=2)
    assert read_lines(output) == [t.text for t in translations]
    scores = corpus_scores([t.text for t in translations], small_corpus.target, "en")
    assert ended.out.decode() == f"{scores}\n"
    as_json = json.loads(kakehashi(*words, "--json").out)
    assert as_json["bleu"]["value"] == scores.bleu.value
    assert as_json["chrf"]["signature"] == scores.chrf.signature
    assert (as_json["lines"], as_json["beam"], as_json["length_penalty"]) == (132, 2, 1.0)
    assert as_json["target_language"] == "en"


def test_a_file_of_translations(kakehashi: Any, tmp_path: Path) -> None:
    write_lines(tmp_path / "hyp", ["The dog sleeps under the table.", "It rains today."])
    write_lines(tmp_path / "ref", ["The dog is asleep under the table.", "It is raining today."])
    words = ["evaluate", "--hypothesis", tmp_path / "hyp", "--reference", tmp_path / "ref"]
    ended = kakehashi(*words, "--target-language", "en")
    expected = corpus_scores(read_lines(tmp_path / "hyp"), read_lines(tmp_path / "ref"), "en")
    assert (ended.status, ended.out.decode(), ended.err) == (0, f"{expected}\n", "")
    chinese = kakehashi(*words, "--target-language", "zh", "--json")
    assert "tok:zh" in json.loads(chinese.out)["bleu"]["signature"]


def test_a_makeshift_tokenizer_is_said_on_stderr(
    kakehashi: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = ("characters were counted",)
    monkeypatch.setattr("kakehashi.evaluation.scores.bleu_tokenizer", lambda _: ("char", note))
    write_lines(tmp_path / "both", ["猫が座る。"])
    words = ["evaluate", "--hypothesis", tmp_path / "both", "--reference", tmp_path / "both"]
    ended = kakehashi(*words, "--target-language", "ja")
    assert ended.err == "note: characters were counted\n"
    assert "tok:char" in ended.out.decode()


def test_unequal_counts_are_refused_before_anything_is_translated(
    kakehashi: Any, model_folder: Path, tmp_path: Path
) -> None:
    write_lines(tmp_path / "two", ["a", "b"])
    write_lines(tmp_path / "three", ["a", "b", "c"])
    write_lines(tmp_path / "none", [])
    two, three, none = (tmp_path / name for name in ("two", "three", "none"))
    from_file = ["--hypothesis", two, "--reference", three, "--target-language", "en"]
    from_model = ["no model at all", "--source", two, "--reference", three, "-o", tmp_path / "out"]
    for words in (from_file, from_model):
        ended = kakehashi("evaluate", *words)
        assert (ended.status, ended.out) == (1, b"")
        assert f"{two} and {three} have 2 and 3 lines" in ended.err
    ended = kakehashi("evaluate", model_folder, "--source", none, "--reference", none)
    assert ended.status == 1
    assert "empty" in ended.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--reference", "r"],
        ["model", "--reference", "r"],
        ["--source", "s", "--reference", "r"],
        ["--hypothesis", "h", "--reference", "r"],
        ["model", "--hypothesis", "h", "--reference", "r", "--target-language", "en"],
        ["model", "--source", "s", "--reference", "r", "--target-language", "en"],
    ],
)
def test_wrong_usage_ends_with_2(kakehashi: Any, words: list[str]) -> None:
    ended = kakehashi("evaluate", *words)
    assert ended.status == 2
    assert ended.out == b""


def test_reported_cases_of_other_toolkits(kakehashi: Any, shared_folder: Path) -> None:
    cases = shared_folder / "cases"
    words = ["--hypothesis", cases / "sub.hyp", "--reference", cases / "sub.ref"]
    ended = kakehashi("evaluate", *words, "--target-language", "en")
    expected = corpus_scores(read_lines(cases / "sub.hyp"), read_lines(cases / "sub.ref"), "en")
    assert ended.out.decode() == f"{expected}\n"
    words = ["--hypothesis", cases / "evaluate_two.hyp"]
    words += ["--reference", cases / "evaluate_three.ref", "--target-language", "en"]
    ended = kakehashi("evaluate", *words)
    assert ended.status == 1
    assert "2 and 3 lines" in ended.err
