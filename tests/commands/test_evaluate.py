"""`kakehashi evaluate`: models, and files of translations, against references."""

import json
import shutil
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import sacrebleu

from kakehashi.data.reading import read_lines, write_lines
from kakehashi.data.seen import TrainingSentences
from kakehashi.evaluation import Metric, evaluate
from kakehashi.inference.options import Options
from kakehashi.inference.translator import Translator

ALL = ("bleu", "chrf", "ter")


def all_scores(*texts: list[str], tokenizer: str = "13a", **options: Any) -> Any:
    """Of systems, with the references last."""
    metrics = [Metric(key, tokenizer, **options) for key in ALL]
    return evaluate(texts[:-1], texts[-1], metrics)


def warned(ended: Any) -> list[str]:
    """What a command warned of; a random model's cut translations are told as notes."""
    return [line for line in ended.err.splitlines() if line.startswith("warning: ")]


@pytest.fixture
def words(small_corpus: Any, tmp_path: Path) -> list[object]:
    """A small test set."""
    write_lines(tmp_path / "test.de", small_corpus.source[:9])
    write_lines(tmp_path / "test.en", small_corpus.target[:9])
    return ["--source", tmp_path / "test.de", "--reference", tmp_path / "test.en"]


@pytest.fixture
def other(small_corpus: Any, tmp_path: Path) -> Path:
    """What another system makes of it."""
    lines = [" ".join(line.split()[::-1][:4]) for line in small_corpus.target[:9]]
    write_lines(tmp_path / "other.en", lines)
    return tmp_path / "other.en"


def test_a_models_translations_are_scored_and_kept(
    kakehashi: Any, model_folder: Path, small_corpus: Any, tmp_path: Path
) -> None:
    output = tmp_path / "out.en"
    words = ["evaluate", model_folder, "--source", small_corpus.source_path]
    words += ["--reference", small_corpus.target_path, "-o", output, "--beam", 2]
    ended = kakehashi(*words)
    assert ended.status == 0
    translations = [
        t.text
        for t in Translator.load(model_folder).translate(small_corpus.source, Options(beam=2))
    ]
    assert read_lines(output) == translations
    scores = all_scores(translations, small_corpus.target).scores[0]
    assert ended.out.decode().splitlines() == [str(score) for score in scores]
    as_json = json.loads(kakehashi(*words, "--format", "json").out)
    assert [as_json[key]["value"] for key in ALL] == [score.value for score in scores]
    assert as_json["ter"]["signature"] == scores[2].signature
    assert (as_json["lines"], as_json["beam"], as_json["length_penalty"]) == (132, 2, 1.0)
    assert as_json["target_language"] == "en"
    assert as_json["seen_in_training"] is None


def test_a_file_of_translations(kakehashi: Any, tmp_path: Path) -> None:
    write_lines(tmp_path / "hyp", ["The dog sleeps under the table.", "It rains today."])
    write_lines(tmp_path / "ref", ["The dog is asleep under the table.", "It is raining today."])
    words = ["evaluate", "--hypothesis", tmp_path / "hyp", "--reference", tmp_path / "ref"]
    ended = kakehashi(*words, "--target-language", "en")
    expected = all_scores(read_lines(tmp_path / "hyp"), read_lines(tmp_path / "ref")).scores[0]
    printed = "".join(f"{score}\n" for score in expected)
    assert (ended.status, ended.out.decode(), ended.err) == (0, printed, "")
    chinese = kakehashi(*words, "--target-language", "zh", "--format", "json")
    assert "tok:zh" in json.loads(chinese.out)["bleu"]["signature"]
    one = kakehashi(*words, "--metric", "ter")
    assert one.out.decode() == f"{expected[2]}\n"


def test_lowercased_bleu_of_tokenised_text(kakehashi: Any, tmp_path: Path) -> None:
    hypotheses = ["THE dog ( a small one ) sleeps .", "Rain today , and it 's cold ."]
    references = ["the dog ( a small one ) slept .", "rain today , and it 's cold ."]
    write_lines(tmp_path / "hyp", hypotheses)
    write_lines(tmp_path / "ref", references)
    words = ["evaluate", "--hypothesis", tmp_path / "hyp", "--reference", tmp_path / "ref"]
    ended = kakehashi(*words, "--tokenize", "none", "--lowercase", "--format", "json")
    expected = sacrebleu.corpus_bleu(
        hypotheses, [references], lowercase=True, tokenize="none", force=True
    )
    bleu = json.loads(ended.out)["bleu"]
    assert bleu["value"] == pytest.approx(expected.score)
    assert "case:lc|eff:no|tok:none" in bleu["signature"]
    assert ended.err == ""
    told = kakehashi(*words, "--target-language", "en")
    assert f"warning: {tmp_path / 'hyp'}: 2 of 2 lines end in a full stop after" in told.err


def test_a_makeshift_tokenizer_is_said_on_stderr(
    kakehashi: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("MeCab", "ipadic"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "sacrebleu.tokenizers.tokenizer_ja_mecab", raising=False)
    write_lines(tmp_path / "both", ["猫が座る。"])
    words = ["evaluate", "--hypothesis", tmp_path / "both", "--reference", tmp_path / "both"]
    ended = kakehashi(*words, "--target-language", "ja")
    assert ended.err.startswith("warning: BLEU counts characters")
    assert ended.err.endswith("pip install 'sacrebleu[ja]'\n")
    assert "tok:char" in ended.out.decode()
    ended = kakehashi(*words, "--tokenize", "ja-mecab")
    assert (ended.status, ended.out) == (1, b"")
    assert ended.err.endswith("is not installed: pip install 'sacrebleu[ja]'\n")
    assert kakehashi(*words, "--target-language", "ja", "--metric", "chrf").err == ""


def test_a_model_against_a_file(
    kakehashi: Any, model_folder: Path, words: list[object], other: Path, tmp_path: Path
) -> None:
    sentences = tmp_path / "sentences.jsonl"
    ended = kakehashi(
        "evaluate", model_folder, *words, "--against", other, "--per-sentence", sentences
    )
    assert ended.status == 0
    sources, references = (read_lines(tmp_path / f"test.{side}") for side in ("de", "en"))
    mine = [t.text for t in Translator.load(model_folder).translate(sources)]
    theirs = read_lines(other)
    expected = all_scores(mine, theirs, references)
    lines = ended.out.decode().splitlines()
    assert lines[:2] == [f"A  {model_folder}", f"B  {other}"]
    for line, a, b, difference in zip(
        lines[4:7], *expected.scores, expected.differences, strict=True
    ):
        assert line.startswith(a.name)
        for text in (f" {a.value:.2f} ({a.low:.2f} to {a.high:.2f})", f" {b.value:.2f} ("):
            assert text in line
        assert line.split()[-2:] == [f"{difference.value:+.2f}", f"{difference.p_value:.4f}"]
    assert lines[-3:] == [f"{score.name} {score.signature}" for score in expected.scores[0]]

    printed = kakehashi("evaluate", model_folder, *words, "--against", other, "--format", "json")
    as_json = json.loads(printed.out)
    assert as_json["model"] == str(model_folder)
    assert as_json["against"]["hypothesis"] == str(other)
    assert as_json["against"]["ter"]["value"] == expected.scores[1][2].value
    assert as_json["differences"]["chrf"] == {
        "value": expected.differences[1].value,
        "p_value": expected.differences[1].p_value,
    }

    records = [json.loads(line) for line in read_lines(sentences)]
    assert [record["line"] for record in records] == list(range(1, 10))
    for record, source, reference, a, b in zip(
        records, sources, references, mine, theirs, strict=True
    ):
        assert (record["source"], record["reference"]) == (source, reference)
        for found, text in ((record, a), (record["against"], b)):
            assert found["hypothesis"] == text
            assert found["bleu"] == pytest.approx(sacrebleu.sentence_bleu(text, [reference]).score)
            assert found["chrf"] == pytest.approx(sacrebleu.sentence_chrf(text, [reference]).score)
            assert found["ter"] == pytest.approx(sacrebleu.sentence_ter(text, [reference]).score)


def test_a_file_against_a_model_and_a_model_against_itself(
    kakehashi: Any, model_folder: Path, words: list[object], other: Path
) -> None:
    one = ["evaluate", model_folder, *words, "--against", other, "--format", "json"]
    two = ["evaluate", "--hypothesis", other, *words, "--against", model_folder]
    first, second = (json.loads(kakehashi(*w).out) for w in (one, [*two, "--format", "json"]))
    assert first["bleu"] == second["against"]["bleu"]
    assert first["differences"]["bleu"]["value"] == -second["differences"]["bleu"]["value"]
    assert second["against"]["beam"] == 3
    same = kakehashi("evaluate", model_folder, *words, "--against", model_folder)
    assert [line.split()[-2:] for line in same.out.decode().splitlines()[4:7]] == [
        ["+0.00", "1.0000"]
    ] * 3


def test_per_sentence_scores_of_a_file_need_no_source(kakehashi: Any, tmp_path: Path) -> None:
    write_lines(tmp_path / "both", ["猫が座る。", ""])
    words = ["evaluate", "--hypothesis", tmp_path / "both", "--reference", tmp_path / "both"]
    words += ["--tokenize", "char", "--per-sentence", tmp_path / "out.jsonl"]
    assert kakehashi(*words).status == 0
    first, second = map(json.loads, read_lines(tmp_path / "out.jsonl"))
    assert list(first) == ["line", "source", "reference", "hypothesis", *ALL]
    assert first == {
        "line": 1,
        "source": None,
        "reference": "猫が座る。",
        "hypothesis": "猫が座る。",
        "bleu": pytest.approx(100.0),
        "chrf": pytest.approx(100.0),
        "ter": 0.0,
    }
    assert (second["hypothesis"], second["bleu"], second["ter"]) == ("", 0.0, 0.0)


def test_sentences_of_the_training_text_are_told(
    kakehashi: Any, model_folder: Path, small_corpus: Any, tmp_path: Path, words: list[object]
) -> None:
    unknown = kakehashi("evaluate", model_folder, *words)
    assert f"warning: {model_folder} keeps no training_hashes.safetensors" in unknown.err

    folder = Path(shutil.copytree(model_folder, tmp_path / "model"))
    training = TrainingSentences.of(
        [small_corpus.source[3].upper(), small_corpus.source[6]], [small_corpus.target[8]]
    )
    (folder / "training_hashes.safetensors").write_bytes(training.to_bytes())
    ended = kakehashi("evaluate", folder, *words, "--format", "json")
    assert warned(ended) == [
        f"warning: {tmp_path / 'test.de'}: 2 of 9 sentences occur in the training text of "
        f"{folder}, letters and digits compared (first lines 4, 7); its scores are better than on "
        "sentences that it has not seen",
        f"warning: {tmp_path / 'test.en'}: 1 of 9 sentences occur in the training text of "
        f"{folder}, letters and digits compared (line 9); its scores are better than on "
        "sentences that it has not seen",
    ]
    as_json = json.loads(ended.out)
    assert as_json["seen_in_training"] == {"source": 2, "target": 1}
    assert [f"warning: {text}" for text in as_json["warnings"]] == warned(ended)

    apart = TrainingSentences.of(["Etwas anderes."], ["Something else."])
    (folder / "training_hashes.safetensors").write_bytes(apart.to_bytes())
    assert warned(kakehashi("evaluate", folder, *words)) == []
    (folder / "training_hashes.safetensors").write_bytes(apart.to_bytes()[:-3])
    damaged = kakehashi("evaluate", folder, *words)
    assert (damaged.status, damaged.out) == (1, b"")
    assert "training_hashes.safetensors is damaged" in damaged.err


def test_references_are_taken_as_they_are_and_their_composition_is_told(
    kakehashi: Any, tmp_path: Path
) -> None:
    apart = [unicodedata.normalize("NFD", line) for line in ("Das ist gut.", "Schöne Grüße!")]
    write_lines(tmp_path / "ref", apart)
    write_lines(tmp_path / "hyp", ["Das ist gut.", "Schöne Grüße!"])
    words = ["evaluate", "--hypothesis", tmp_path / "hyp", "--reference", tmp_path / "ref"]
    ended = kakehashi(*words, "--target-language", "de", "--format", "json")
    assert f"{tmp_path / 'ref'}: 1 of 2 lines are not in Unicode NFC (line 2)" in ended.err
    assert json.loads(ended.out)["chrf"]["value"] < 99


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
    words = ["--hypothesis", two, "--reference", two, "--target-language", "en"]
    ended = kakehashi("evaluate", *words, "--against", three)
    assert (ended.status, ended.out) == (1, b"")
    assert f"{three} and {two} have 3 and 2 lines" in ended.err
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
        ["--hypothesis", "h", "--reference", "r", "--tokenize", "none", "--beam", "3"],
        ["--hypothesis", "h", "--reference", "r", "--tokenize", "none", "-o", "out"],
        ["--hypothesis", "h", "--reference", "r", "--tokenize", "none", "--against", "."],
        ["--hypothesis", "h", "--reference", "r", "--tokenize", "flores200"],
    ],
)
def test_wrong_usage_ends_with_2(kakehashi: Any, words: list[str]) -> None:
    ended = kakehashi("evaluate", *words)
    assert ended.status == 2
    assert ended.out == b""


def test_systems_that_cannot_be_compared_are_refused(
    kakehashi: Any, model_folder: Path, words: list[object], tmp_path: Path
) -> None:
    ended = kakehashi("evaluate", model_folder, *words, "--against", tmp_path / "nothing")
    assert (ended.status, ended.out) == (1, b"")
    assert "nothing" in ended.err
    french = Path(shutil.copytree(model_folder, tmp_path / "french"))
    settings = (french / "config.json").read_text("utf-8")
    (french / "config.json").write_text(settings.replace('"en"', '"fr"'), "utf-8")
    ended = kakehashi("evaluate", model_folder, *words, "--against", french)
    assert (ended.status, ended.out) == (1, b"")
    assert f"{model_folder} translates de to en and {french} translates de to fr" in ended.err


def test_reported_cases_of_other_toolkits(kakehashi: Any, shared_folder: Path) -> None:
    cases = shared_folder / "cases"
    words = ["--hypothesis", cases / "sub.hyp", "--reference", cases / "sub.ref"]
    ended = kakehashi("evaluate", *words, "--target-language", "en")
    expected = all_scores(read_lines(cases / "sub.hyp"), read_lines(cases / "sub.ref")).scores[0]
    assert ended.out.decode().splitlines() == [str(score) for score in expected]
    words = ["--hypothesis", cases / "evaluate_two.hyp"]
    words += ["--reference", cases / "evaluate_three.ref", "--target-language", "en"]
    ended = kakehashi("evaluate", *words)
    assert ended.status == 1
    assert "2 and 3 lines" in ended.err
    words = ["--hypothesis", cases / "zh.hyp", "--reference", cases / "zh.ref"]
    ended = kakehashi("evaluate", *words, "--target-language", "zh")
    assert "tok:zh" in ended.out.decode().splitlines()[0]


def test_published_scores_from_the_command_line(kakehashi: Any, shared_folder: Path) -> None:
    folder = shared_folder / "data" / "bleu_crosscheck"
    words = ["evaluate", "--reference", folder / "reference.txt", "--tokenize", "none"]
    words += ["--lowercase", "--metric", "bleu", "--hypothesis"]
    ended = kakehashi(*words, folder / "transformer-6-5-1-best.txt")
    assert ended.out.startswith(b"BLEU 37.28 (95 % interval ")
    refused = kakehashi(*words, folder / "transformer-5-19-base2-ckpt-20.txt")
    assert refused.status == 1
    assert "have 1,001 and 1,000 lines" in refused.err


def test_a_seed_is_for_samples(kakehashi: Any, model_folder: Path, words: list[object]) -> None:
    ended = kakehashi("evaluate", model_folder, *words, "--seed", 3)
    assert ended.status == 2
    told = " ".join(ended.err.replace("│", " ").split())
    assert "--seed is for samples: give --mbr too" in told  # it has no --sample
