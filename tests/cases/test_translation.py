"""Every file to translate: N lines in, N lines out, at every batch size, with both models."""

import json
from pathlib import Path
from typing import Any

import pytest

from kakehashi.decoding.hypothesis import Hypothesis
from kakehashi.inference.options import Options
from kakehashi.inference.translator import Translator

BATCH_SIZES = (1, 2, 16)
BLANK, SEPARATED, LONG, FRAGILE = (2, 4, 5), (6, 7, 8, 16), 11, (9, 10, 12, 13, 14)


def records(ended: Any) -> list[dict[str, Any]]:
    """What `--format jsonl` has written."""
    assert ended.status == 0, ended.err
    return [json.loads(row) for row in ended.out.decode().split("\n")[:-1]]


@pytest.fixture
def translated(kakehashi: Any, folder: Path, cases: Path) -> dict[int, Any]:
    """How the command ended with the twenty lines, at each batch size."""
    words = ["translate", folder, "-i", cases / "translate_lines.txt", "--format", "jsonl"]
    return {size: kakehashi(*words, "--batch-size", size) for size in BATCH_SIZES}


def test_twenty_lines(translated: dict[int, Any]) -> None:
    first = records(translated[1])
    assert [record["line"] for record in first] == list(range(1, 21))
    for size, ended in translated.items():
        found = records(ended)
        assert [r["translation"] for r in found] == [r["translation"] for r in first], size
        scores = [record["score"] for record in found]
        assert scores == pytest.approx([record["score"] for record in first], abs=1e-4)
        assert ended.out.count(b"\n") == 20
        _no_traces_of_pieces([record["translation"] for record in found])
        for number, record in enumerate(found, 1):
            assert bool(record["translation"]) <= (number not in BLANK)
            _one_warning_at_most(ended.err, number, record)


def _no_traces_of_pieces(texts: list[str]) -> None:
    for text in texts:
        assert "\u2581" not in text
        assert len(text.splitlines()) <= 1
        assert not any(f"<0x{byte:02X}>" in text for byte in range(256))


def _one_warning_at_most(errors: str, number: int, record: dict[str, Any]) -> None:
    said = [line for line in errors.split("\n") if line.startswith(f"note: line {number}")]
    said = [line for line in said if not line[len(f"note: line {number}")].isdigit()]
    assert len(said) == len(record["warnings"]) <= 1
    about_length = [line for line in said if f"line {number} has " in line]
    assert len(about_length) == (number == LONG)
    if number == LONG:
        assert "was trained on at most" in said[0]
        assert "parts, each by itself" in said[0]


def test_trained_models_say_what_they_have_learnt(
    kakehashi: Any, learnt: Path, cases: Path, word_for_word: Any
) -> None:
    """Blank lines stay blank, and what looks like a control symbol is text."""
    path = cases / "translate_lines.txt"
    lines = path.read_bytes().decode().split("\n")[:-1]
    # Models that know lines by heart are too sure of them for a search that stops soon.
    patient = ["--patience", 4]
    found = records(kakehashi("translate", learnt, "-i", path, "--format", "jsonl", *patient))
    pairs = list(zip(lines, (record["translation"] for record in found), strict=True))
    long = pairs.pop(LONG - 1)
    known = [(text, word_for_word(line)) for line, text in pairs if word_for_word(line) is not None]
    assert len(known) >= 8
    assert [text for text, _ in known] == [expected for _, expected in known]
    # Each part has some words: the models know sentences of seven, so not every one.
    assert len(long[1].split()) >= len(long[0].split()) / 25


def test_of_a_long_line_every_word_is_translated_in_order(
    folder: Path, cases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a search that only repeats what it is given, the line comes out as it went in."""
    translator = Translator.load(folder)

    def repeat(rows: list[list[int]], **settings: Any) -> list[list[Hypothesis]]:
        assert all(len(row) < translator.config.max_length for row in rows)
        return [[Hypothesis(tuple(row), -1.0, -float(len(row)), True)] for row in rows]

    monkeypatch.setattr(translator.engine, "search", repeat)
    lines = (cases / "translate_lines.txt").read_bytes().decode().split("\n")
    lines = [lines[LONG - 1], "x" * 3000, "Der Mond scheint. Die Katze schläft, " * 90]
    for size in BATCH_SIZES:
        for line, found in zip(
            lines, translator.translate(lines, Options(batch_size=size)), strict=True
        ):
            assert "".join(found.text.split()) == "".join(line.split())
            assert found.score == -1.0
            assert len(found.warnings) == 1


@pytest.mark.parametrize("size", BATCH_SIZES)
def test_ends_of_lines(
    kakehashi: Any, learnt: Path, cases: Path, size: int, word_for_word: Any
) -> None:
    def out(name: str, stdin: bytes | None = None) -> list[str]:
        where = ["-i", cases / name] if stdin is None else []
        ended = kakehashi("translate", learnt, *where, "--batch-size", size, stdin=stdin or b"")
        assert (ended.status, ended.err) == (0, "")
        assert ended.out.endswith(b"\n")
        return ended.out.decode().split("\n")[:-1]

    without = (cases / "translate_no_final_newline.txt").read_bytes()
    assert out("translate_no_final_newline.txt") == [
        word_for_word(line) for line in without.decode().split("\n")
    ]
    assert out("", without + b"\n") == out("", without) == out("translate_no_final_newline.txt")
    crlf = (cases / "translate_crlf.txt").read_bytes()
    assert len(out("translate_crlf.txt")) == 4
    assert out("translate_crlf.txt")[2] == ""
    assert out("translate_crlf.txt") == out("", crlf.replace(b"\r\n", b"\n")) == out("", crlf)
    blanks = (cases / "blanks.src").read_bytes().decode().split("\n")[:-1]
    assert out("blanks.src") == [word_for_word(line) for line in blanks]
    assert [number for number, text in enumerate(out("blanks.src"), 1) if not text] == [2, 4, 5]


@pytest.mark.parametrize("n_best", [1, 2])
def test_every_format_has_every_line(kakehashi: Any, folder: Path, n_best: int) -> None:
    text = "hund\n\n\u2028\nmond ||| haus\n\u200b\n42\n</s>".encode()
    words = ["translate", folder, "--n-best", n_best]
    plain = kakehashi(*words, stdin=text)
    found = records(kakehashi(*words, "--format", "jsonl", stdin=text))
    assert [record["line"] for record in found] == list(range(1, 8))
    rows = plain.out.decode().split("\n")[:-1]
    if n_best == 1:
        assert rows == [record["translation"] for record in found]
        return
    # A translation may hold bars itself: the number is before the first, the score after the last.
    parsed = [
        (*row.split(" ||| ", 1)[:1], *row.split(" ||| ", 1)[1].rsplit(" ||| ", 1)) for row in rows
    ]
    expected = [
        (str(record["line"]), h["text"], f"{h['score']:.4f}")
        for record in found
        for h in record["hypotheses"]
    ]
    assert parsed == expected


def test_a_bad_byte_stops_a_stream_at_its_line(
    kakehashi: Any, learnt: Path, tmp_path: Path
) -> None:
    lines = [b"hund"] * 20
    lines[11] = b"kat\xffze"
    text = b"\n".join(lines)
    for size in BATCH_SIZES:
        ended = kakehashi("translate", learnt, "--batch-size", size, stdin=text)
        assert ended.status == 1
        assert ended.out == b"dog\n" * 11
        assert ended.err.startswith("error: standard input, line 12: byte 0xFF is not UTF-8")
    (tmp_path / "in").write_bytes(text)
    out = tmp_path / "out"
    for words, stdin in ((["-i", tmp_path / "in"], b""), ([], text)):
        ended = kakehashi("translate", learnt, *words, "-o", out, stdin=stdin)
        assert ended.status == 1
        assert "line 12" in ended.err
        assert [path.name for path in tmp_path.iterdir()] == ["in"]
    # A file is read through before anything is translated.
    ended = kakehashi("translate", learnt, "-i", tmp_path / "in")
    assert (ended.status, ended.out) == (1, b"")
