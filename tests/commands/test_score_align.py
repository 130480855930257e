"""`kakehashi score` and `kakehashi align`: what a model thinks of translations that are given."""

import json
import math
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from kakehashi.data.reading import write_lines
from kakehashi.inference.alignment import pharaoh
from kakehashi.inference.translator import Translator

SOURCE = ["Der Hund schläft.", "", "\u200b", "Die\tKatze\u00a0 trinkt Milch.", "猫", "Hund " * 60]
TARGET = ["The dog is asleep.", "", "x", "The cat\u3000drinks milk.", "a  cat", "Dog"]


@pytest.fixture
def files(tmp_path: Path) -> list[Any]:
    write_lines(tmp_path / "a.de", SOURCE)
    write_lines(tmp_path / "a.en", TARGET)
    return ["--source", tmp_path / "a.de", "--target", tmp_path / "a.en"]


def rows(ended: Any) -> list[str]:
    assert ended.status == 0, ended.err
    return list(ended.out.decode().split("\n")[:-1])


def test_every_line_is_scored(kakehashi: Any, model_folder: Path, files: list[Any]) -> None:
    expected = list(Translator.load(model_folder).score(zip(SOURCE, TARGET, strict=True)))
    ended = kakehashi("score", model_folder, *files)
    found = [[float(cell) for cell in row.split("\t")] for row in rows(ended)]
    assert [row[0] for row in found] == pytest.approx(
        [s.log_probability for s in expected], abs=1e-4
    )
    for row, scored in zip(found, expected, strict=True):
        pieces = len(scored.tokens)
        assert row[1] == pytest.approx(math.exp(-row[0] / max(1, pieces)), rel=1e-4)
    assert found[1] == [0.0, 1.0]  # nothing of nothing
    total, pieces = sum(row[0] for row in found), sum(len(s.tokens) for s in expected)
    assert f"6 lines, {pieces} pieces: log probability {total:,.4f}" in ended.err
    assert f"perplexity {math.exp(-total / pieces):,.4f} per piece" in ended.err


def test_the_keys_of_a_scored_line_are_these(
    kakehashi: Any, model_folder: Path, files: list[Any]
) -> None:
    expected = Translator.load(model_folder).score(zip(SOURCE, TARGET, strict=True))
    found = rows(kakehashi("score", model_folder, *files, "--format", "jsonl"))
    for number, (row, scored) in enumerate(zip(found, expected, strict=True), 1):
        record = json.loads(row)
        keys = ["line", "source", "target", "log_probability", "perplexity", "tokens"]
        assert list(record) == [*keys, "token_log_probabilities", "source_tokens"]
        assert record["line"] == number
        assert (record["source"], record["target"]) == (SOURCE[number - 1], TARGET[number - 1])
        assert record["tokens"] == list(scored.tokens)
        assert record["source_tokens"] == list(scored.source_tokens)
        assert record["token_log_probabilities"] == pytest.approx(
            list(scored.token_log_probabilities), abs=1e-4
        )


@pytest.mark.parametrize("ensemble", [False, True])
def test_translations_have_the_score_that_translate_gave_them(
    kakehashi: Any, model_folder: Path, finished_run: Path, tmp_path: Path, ensemble: bool
) -> None:
    """By their own pieces all of them, in parts or cut short too; by their text most."""
    trained = [] if ensemble else [finished_run]
    for model in (model_folder, *trained):
        write_lines(tmp_path / "in", SOURCE)
        words = ["--with", model] if ensemble else []
        given = ["-i", tmp_path / "in", "-o", tmp_path / "out", "--format", "jsonl"]
        assert kakehashi("translate", model, *words, *given).status == 0
        told = [json.loads(row) for row in (tmp_path / "out").read_text("utf-8").splitlines()]
        if "; the translation of" in "".join(told[-1]["warnings"]):  # parts that did not end
            write_lines(tmp_path / "out", map(json.dumps, told[:-1]))
            write_lines(tmp_path / "in", SOURCE[:-1])
            told.pop()
        wanted = [record["log_probability"] for record in told]
        ended = kakehashi("score", model, *words, "--translations", tmp_path / "out")
        assert [float(row.split("\t")[0]) for row in rows(ended)] == pytest.approx(wanted, abs=1e-4)
        write_lines(tmp_path / "text", [record["translation"] for record in told])
        texts = ["--source", tmp_path / "in", "--target", tmp_path / "text", "--format", "jsonl"]
        compared = 0
        for row, record in zip(rows(kakehashi("score", model, *words, *texts)), told, strict=True):
            scored = json.loads(row)
            if scored["tokens"] == record["tokens"]:
                compared += 1
                expected = record["log_probability"]
                assert scored["log_probability"] == pytest.approx(expected, abs=1e-4)
        assert compared >= 2


def test_words_are_aligned(kakehashi: Any, model_folder: Path, files: list[Any]) -> None:
    expected = Translator.load(model_folder).align(zip(SOURCE, TARGET, strict=True))
    found = rows(kakehashi("align", model_folder, *files))
    assert found == [pharaoh(one.word_alignment) for one in expected]
    assert found[1] == found[2] == ""
    for row, source, target in zip(found, SOURCE, TARGET, strict=True):
        pairs = [tuple(map(int, pair.split("-"))) for pair in row.split()]
        assert all(i < len(source.split()) and j < len(target.split()) for i, j in pairs)
        if row:
            assert {j for _, j in pairs} == set(range(len(target.split())))
    told = rows(kakehashi("align", model_folder, *files, "--format", "jsonl"))
    for number, (row, pairs_text) in enumerate(zip(told, found, strict=True), 1):
        record = json.loads(row)
        keys = ["line", "source", "target", "word_alignment", "source_tokens", "tokens"]
        assert list(record) == [*keys, "alignment"]
        assert (record["line"], record["word_alignment"]) == (number, pairs_text)
        assert all(j < len(record["tokens"]) - 1 for _, j in record["alignment"])


@pytest.mark.parametrize("command", ["score", "align"])
def test_unequal_files_are_refused_before_any_work(
    kakehashi: Any, model_folder: Path, files: list[Any], tmp_path: Path, command: str
) -> None:
    write_lines(tmp_path / "a.en", TARGET[:-1])
    ended = kakehashi(command, model_folder, *files, "-o", tmp_path / "out")
    assert (ended.status, ended.out) == (1, b"")
    assert ended.err.startswith(f"error: {tmp_path / 'a.de'} has 6 lines and ")
    assert "a.en has 5; line k of one" in ended.err
    assert not (tmp_path / "out").exists()
    (tmp_path / "a.en").unlink()
    os.mkfifo(tmp_path / "a.en")  # cannot be counted before
    text = "".join(f"{line}\n" for line in TARGET[:-1])
    writer = threading.Thread(target=(tmp_path / "a.en").write_text, args=(text, "utf-8"))
    writer.start()
    ended = kakehashi(command, model_folder, *files)
    writer.join()
    assert ended.status == 1
    assert ended.out.count(b"\n") == 5
    assert "a.en has 5 lines and " in ended.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x", "line 1 is not JSON"),
        ('{"translation": "x"}', '"source" is missing'),
        (
            '{"source": "x", "translation": "y", "source_tokens": ["nope", "</s>"], "tokens": []}',
            "the vocabulary has no piece 'nope'",
        ),
        (
            '{"source": "x", "translation": "y", "source_tokens": ["</s>", "a", "</s>"], '
            '"tokens": ["a"]}',
            "in, line 1 was translated in 2 parts, and one did not come to an end",
        ),
    ],
)
def test_what_is_no_translation_in_json_is_named(
    kakehashi: Any, model_folder: Path, tmp_path: Path, line: str, message: str
) -> None:
    write_lines(tmp_path / "in", [line])
    ended = kakehashi("score", model_folder, "--translations", tmp_path / "in")
    assert (ended.status, ended.out) == (1, b"")
    assert message in ended.err


def test_words_that_do_not_go_together(kakehashi: Any, files: list[Any], tmp_path: Path) -> None:
    for words in ([], files[:2], [*files, "--translations", tmp_path / "a.en"]):
        ended = kakehashi("score", tmp_path, *words)
        assert (ended.status, ended.out) == (2, b"")
