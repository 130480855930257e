"""`kakehashi translate`: as many lines out as in, and nothing else on stdout."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kakehashi.inference.options import Options
from kakehashi.inference.translator import Translator

LINES = ["Der Hund schläft.", "", "eine\u2028Zeile", "\u200b", "Die Katze trinkt Milch.", "猫"]
TEXT = "\n".join(LINES).encode() + b"\n"


@pytest.fixture(scope="module")
def expected(model_folder: Path) -> list[Any]:
    return Translator.load(model_folder).translate(LINES, Options(n_best=2))


def test_standard_input_to_standard_output(
    kakehashi: Any, model_folder: Path, expected: list[Any]
) -> None:
    ended = kakehashi("translate", model_folder, stdin=TEXT)
    assert ended.status == 0
    assert ended.out.decode().split("\n") == [*(t.text for t in expected), ""]
    assert ended.out.decode().split("\n")[1] == ended.out.decode().split("\n")[3] == ""


def test_file_to_file(
    kakehashi: Any, model_folder: Path, expected: list[Any], tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_bytes(TEXT.rstrip(b"\n").replace(b"\n", b"\r\n"))
    output = tmp_path / "out.txt"
    ended = kakehashi("translate", model_folder, "-i", tmp_path / "in.txt", "-o", output)
    assert (ended.status, ended.out) == (0, b"")
    assert output.read_text("utf-8").split("\n") == [*(t.text for t in expected), ""]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.txt"]
    in_place = kakehashi("translate", model_folder, "-i", output, "-o", output)
    assert in_place.status == 0
    assert output.read_text("utf-8").count("\n") == len(LINES)


def test_n_best_lists_carry_line_numbers_and_scores(
    kakehashi: Any, model_folder: Path, expected: list[Any]
) -> None:
    ended = kakehashi("translate", model_folder, "--n-best", 2, stdin=TEXT)
    rows = [row.split(" ||| ") for row in ended.out.decode().split("\n")[:-1]]
    flat = [(n, h.text, h.score) for n, t in enumerate(expected, 1) for h in t.hypotheses]
    assert [int(row[0]) for row in rows] == [n for n, _, _ in flat]
    assert [row[1] for row in rows] == [text for _, text, _ in flat]
    assert [float(row[2]) for row in rows] == pytest.approx([s for *_, s in flat], abs=1e-3)


def test_json_lines_carry_everything(
    kakehashi: Any, model_folder: Path, expected: list[Any]
) -> None:
    ended = kakehashi("translate", model_folder, "--format", "jsonl", "--n-best", 2, stdin=TEXT)
    records = [json.loads(row) for row in ended.out.decode().split("\n")[:-1]]
    assert [record["line"] for record in records] == list(range(1, len(LINES) + 1))
    for record, translation in zip(records, expected, strict=True):
        assert record["translation"] == translation.text
        assert record["score"] == pytest.approx(translation.score, abs=1e-4)
        assert [h["text"] for h in record["hypotheses"]] == [h.text for h in translation.hypotheses]
        assert record["warnings"] == list(translation.warnings)


def test_search_settings_reach_the_search(kakehashi: Any, model_folder: Path) -> None:
    options = ["--beam", 2, "--length-penalty", 0.3, "--batch-size", 1, "--format", "jsonl"]
    ended = kakehashi("translate", model_folder, *options, stdin=TEXT)
    expected = Translator.load(model_folder).translate(LINES, Options(beam=2, length_penalty=0.3))
    scores = [json.loads(row)["score"] for row in ended.out.decode().split("\n")[:-1]]
    assert scores == pytest.approx([t.score for t in expected], abs=1e-4)


def test_a_long_line_is_noted_on_stderr_with_its_number(kakehashi: Any, model_folder: Path) -> None:
    ended = kakehashi("translate", model_folder, stdin=b"hund\n" + b"hund " * 60 + b"\n")
    assert ended.status == 0
    assert ended.out.count(b"\n") == 2
    assert "note: line 2 has" in ended.err
    assert "at most 53" in ended.err


@pytest.mark.parametrize(("text", "lines"), [(b"", 0), (b"\n", 1), (b"a", 1), (b"a\n\n", 2)])
def test_no_lines_and_no_final_line_feed(
    kakehashi: Any, model_folder: Path, text: bytes, lines: int
) -> None:
    assert kakehashi("translate", model_folder, stdin=text).out.count(b"\n") == lines


def test_what_goes_wrong_is_said_in_one_line_and_leaves_nothing(
    kakehashi: Any, model_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "bad").write_bytes(b"gut\nschl\xe4ft\n")
    (tmp_path / "good").write_bytes(b"gut\n")
    cases: list[tuple[list[Any], bytes, str]] = [
        ([tmp_path / "nowhere"], b"", "nowhere"),
        ([model_folder, "-i", tmp_path / "missing"], b"", "missing does not exist"),
        ([model_folder, "-i", tmp_path / "bad", "-o", tmp_path / "out"], b"", "bad, line 2"),
        ([model_folder, "-o", tmp_path / "out"], b"\n\xff\n", "standard input, line 2"),
        ([model_folder, "-o", tmp_path / "no" / "out"], b"gut\n", "cannot write"),
        ([model_folder, "-o", tmp_path / "out.gz"], b"gut\n", "plain text"),
        ([model_folder, "--n-best", 4], b"gut\n", "n-best list of 4"),
        ([model_folder, "--device", "toaster"], b"gut\n", "toaster"),
    ]
    for words, stdin, message in cases:
        ended = kakehashi("translate", *words, stdin=stdin)
        assert ended.status == 1, words
        assert ended.err.startswith("error: "), words
        assert message in ended.err
        assert ended.err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad", "good"]


def test_an_existing_output_survives_a_failure(
    kakehashi: Any, model_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "out").write_text("precious\n")
    ended = kakehashi("translate", model_folder, "-o", tmp_path / "out", stdin=b"gut\n\xff\n")
    assert ended.status == 1
    assert (tmp_path / "out").read_text() == "precious\n"


@pytest.mark.parametrize(
    "options", [["--beam", 0], ["--format", "xml"], ["--length-penalty", -1], ["--speed", 9]]
)
def test_wrong_usage_ends_with_2(kakehashi: Any, model_folder: Path, options: list[Any]) -> None:
    ended = kakehashi("translate", model_folder, *options)
    assert ended.status == 2
    assert ended.out == b""


def command(*words: object, **options: Any) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "kakehashi.commands.main", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def test_help_does_not_wait_for_torch() -> None:
    program = (
        "import sys\n"
        "from kakehashi.commands.main import app\n"
        "try:\n"
        "    app(['translate', '--help'])\n"
        "except SystemExit:\n"
        "    pass\n"
        "print([m for m in ('torch', 'lightning', 'matplotlib', 'sacrebleu', 'hydra', 'numpy')\n"
        "       if m in sys.modules], file=sys.stderr)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert b"--length-penalty" in ended.stdout
    assert ended.stderr.strip() == b"[]"


def test_a_reader_that_goes_away_is_no_error_to_report(model_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("gut\n" * 40)
    words = ["translate", model_folder, "-i", tmp_path / "in", "--beam", 1, "--batch-size", 1]
    with command(*words) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read().decode()
    assert process.returncode != 0
    assert "Traceback" not in errors
    assert "Broken" not in errors
    assert "Exception" not in errors


def test_text_is_utf_8_whatever_the_locale(model_folder: Path, expected: list[Any]) -> None:
    environment = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    with command("translate", model_folder, stdin=subprocess.PIPE, env=environment) as process:
        out, errors = process.communicate(TEXT)
    assert process.returncode == 0, errors
    assert out.decode("utf-8").split("\n")[:-1] == [t.text for t in expected]


def test_a_batch_size_of_one_answers_line_by_line(model_folder: Path) -> None:
    words = ["translate", model_folder, "--batch-size", 1, "--format", "jsonl"]
    with command(*words, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in (1, 2):
            process.stdin.write(b"gut\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["line"] == number
        process.stdin.close()
        assert process.wait() == 0


def test_a_pipe_can_be_read_and_written_by_name(model_folder: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "in")
    os.mkfifo(tmp_path / "out")
    words = ["translate", model_folder, "-i", tmp_path / "in", "-o", tmp_path / "out"]
    # The command opens its output first, and whichever end opens first waits for the other.
    with command(*words, "--format", "jsonl") as process, (tmp_path / "out").open("rb") as out:
        (tmp_path / "in").write_bytes(b"eins\nzwei\n")
        rows = out.read().decode().split("\n")
    assert process.returncode == 0
    assert [json.loads(row)["line"] for row in rows[:-1]] == [1, 2]
