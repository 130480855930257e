"""`kakehashi translate`: as many lines out as in, and nothing else on stdout."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kakehashi.decoding.methods import DiverseBeam, Sampling
from kakehashi.inference.alignment import pharaoh
from kakehashi.inference.options import MinimumRisk, Options
from kakehashi.inference.request import Request
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


def test_the_keys_of_a_json_line_are_these(kakehashi: Any, model_folder: Path) -> None:
    """Programs depend on them: change the guide too, and say so."""
    options = ["--format", "jsonl", "--n-best", 2]
    ended = kakehashi("translate", model_folder, *options, stdin=TEXT)
    told = Translator.load(model_folder).translate(LINES, Options(n_best=2, details=True))
    candidate = ["score", "log_probability", "confidence", "tokens", "token_log_probabilities"]
    candidate += ["alignment", "word_alignment"]
    for row, line, expected in zip(ended.out.decode().splitlines(), LINES, told, strict=True):
        record = json.loads(row)
        keys = ["line", "source", "translation", *candidate, "source_tokens", "seconds"]
        assert list(record) == [*keys, "hypotheses", "warnings"]
        assert record["source"] == line
        assert record["source_tokens"] == list(expected.source_tokens)
        best = record["hypotheses"][0]
        assert list(best) == ["text", *candidate]
        assert {key: record[key] for key in candidate} == {key: best[key] for key in candidate}
        for found, wanted in zip(record["hypotheses"], expected.hypotheses, strict=True):
            assert found["text"] == wanted.text
            assert found["tokens"] == list(wanted.tokens)
            assert found["alignment"] == [list(pair) for pair in wanted.alignment]
            assert found["word_alignment"] == pharaoh(wanted.word_alignment)
            for key in ("log_probability", "confidence", "token_log_probabilities"):
                assert found[key] == pytest.approx(getattr(wanted, key), abs=1e-4)
        assert (record["seconds"] > 0) == bool(record["translation"])


KEPT: dict[str, Any] = {"split": True, "markup": True, "placeholders": True, "keep": "H.nd"}
SETTINGS: list[tuple[list[Any], dict[str, Any]]] = [
    (["--beam", 2, "--length-penalty", 0.3], {"beam": 2, "length_penalty": 0.3}),
    (["--patience", 9], {"patience": 9.0}),
    (["--coverage-penalty", 0.9], {"coverage_penalty": 0.9}),
    (["--min-ratio", 1.5, "--max-ratio", 1.5], {"min_ratio": 1.5, "max_ratio": 1.5}),
    (["--no-repeat-ngram", 1], {"no_repeat_ngram": 1}),
    (["--repetition-penalty", 3], {"repetition_penalty": 3.0}),
    (["--sample", "--seed", 5], {"method": Sampling(seed=5)}),
    (
        ["--sample", "--temperature", 0.5, "--top-k", 7, "--top-p", 0.8],
        {"method": Sampling(0.5, 7, 0.8)},
    ),
    (["--diverse", 3], {"method": DiverseBeam(3)}),
    (["--diverse", 3, "--diversity", 9], {"method": DiverseBeam(3, 9.0)}),
    (["--mbr", 4, "--top-k", 9], {"method": MinimumRisk(4, Sampling(top_k=9))}),
    (["--n-best", 3, "--batch-size", 1], {"n_best": 3}),
    (["--with", "MODEL", "--beam", 2], {"beam": 2}),
    (["--split", "--markup", "--placeholders", "--keep", "H.nd"], KEPT),
]


@pytest.mark.parametrize(("words", "options"), SETTINGS)
def test_search_settings_reach_the_search(
    kakehashi: Any, model_folder: Path, words: list[Any], options: dict[str, Any]
) -> None:
    words = [model_folder if word == "MODEL" else word for word in words]
    ended = kakehashi("translate", model_folder, *words, "--format", "jsonl", stdin=TEXT)
    expected = Translator.load(model_folder).translate(LINES, Options(**options))
    found = [json.loads(row) for row in ended.out.decode().split("\n")[:-1]]
    assert [[h["text"] for h in r["hypotheses"]] for r in found] == [
        [h.text for h in t.hypotheses] for t in expected
    ]
    assert [r["score"] for r in found] == pytest.approx([t.score for t in expected], abs=1e-4)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--sample", "--mbr", 4], "--sample and --mbr are different ways to translate"),
        (["--diverse", 3, "--sample"], "--sample and --diverse are different"),
        (["--top-k", 4], "--top-k is for samples: give --sample or --mbr too"),
        (["--seed", 4, "--beam", 2], "--seed is for samples"),
        (["--diversity", 1], "--diversity is for a diverse beam: give --diverse too"),
        (["--sample", "--beam", 4], "--beam is for a beam, and --sample has none"),
        (["--mbr", 9, "--length-penalty", 1], "--length-penalty is for a beam, and --mbr has none"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    kakehashi: Any, model_folder: Path, words: list[Any], message: str
) -> None:
    ended = kakehashi("translate", model_folder, *words, stdin=TEXT)
    assert (ended.status, ended.out) == (2, b"")
    assert message in " ".join(ended.err.replace("│", " ").split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--diverse", 2], "a diverse beam of 3 cannot be shared out evenly to 2 groups"),
        (["--min-ratio", 3], "it must be from 0 to decoding.max_ratio, 0.1"),
        (["--sample", "--temperature", 0], "the temperature is 0.0"),
        (["--copy-unknown"], "there is nothing to copy"),
        (["--keep", "("], "keep is no regular expression"),
        (["--terms", "nowhere.tsv"], "nowhere.tsv"),
        (["--mbr", 4, "--n-best", 5], "needs as many samples; they are 4"),
        (["--require", "dog", "--forbid", "dog"], "'dog' is required, and 'dog' in it forbidden"),
        (["--require", " "], "a required or forbidden phrase has nothing to be seen"),
    ],
)
def test_what_the_model_refuses_is_said_before_the_first_line(
    kakehashi: Any, model_folder: Path, words: list[Any], message: str
) -> None:
    ended = kakehashi("translate", model_folder, *words, stdin=TEXT)
    assert (ended.status, ended.out) == (1, b"")
    assert message in ended.err
    assert ended.err.count("\n") == 1


def test_phrases_for_every_line_and_for_one(kakehashi: Any, model_folder: Path) -> None:
    asked = [
        {"text": "Der Hund schläft.", "required": ["milk"]},
        {"text": "", "prefix": "unused"},
        {"text": "Die Katze\ntrinkt Milch.", "prefix": "My cat", "forbidden": ["the", "a"]},
        {"text": "猫"},
    ]
    words = ["--input-format", "jsonl", "--prefix", "The", "--require", "tree"]
    words += ["--forbid", "dog", "--max-ratio", 3]
    stdin = "\n".join(map(json.dumps, asked)).encode()
    ended = kakehashi("translate", model_folder, *words, stdin=stdin)
    first, blank, third, last = ended.out.decode().split("\n")[:-1]
    assert blank == ""
    assert first.startswith("The")
    assert third.startswith("My cat")
    assert last.startswith("The")
    assert "milk" in first
    assert all("tree" in text and "dog" not in text for text in (first, third, last))
    requests = [
        Request(
            str(one["text"]),
            str(one.get("prefix", "The")),
            ("tree", *one.get("required", ())),
            ("dog", *one.get("forbidden", ())),
        )
        for one in asked
    ]
    expected = Translator.load(model_folder).translate(requests, Options(max_ratio=3.0))
    assert [t.text for t in expected] == [first, blank, third, last]


def test_a_phrase_that_finds_no_room_is_warned_of(kakehashi: Any, model_folder: Path) -> None:
    words = ["--require", "house", "--require", "a very long phrase indeed", "--format", "jsonl"]
    ended = kakehashi("translate", model_folder, *words, stdin=b"\nHund\n")
    blank, record = map(json.loads, ended.out.splitlines())
    assert blank["warnings"] == []
    (warning,) = [one for one in record["warnings"] if "required" in one]
    assert warning.startswith("line 2: the translation lacks the required ")
    assert "'a very long phrase indeed': there was no room for it" in warning
    assert f"note: {warning}\n" in ended.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "is not JSON"),
        ("gut", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ('"gut"', "is not a JSON object"),
        ('{"prefix": "x"}', 'lacks "text"'),
        ('{"text": "x", "require": ["y"]}', "has the key 'require'"),
        ('{"text": 1}', '"text" is 1; it must be a string'),
        ('{"text": "x", "prefix": null}', '"prefix" is null; it must be a string'),
        ('{"text": "x", "required": "y"}', '"required" is "y"; it must be a list of strings'),
        ('{"text": "x", "forbidden": [1]}', '"forbidden" is [1]; it must be a list of strings'),
        ('{"text": "x", "required": ["y"], "forbidden": ["y"]}', "'y' is required"),
        (json.dumps({"text": "x", "required": [f"y{i}" for i in range(9)]}), "9 required phrases"),
    ],
)
def test_a_line_that_is_no_request_is_named(
    kakehashi: Any, model_folder: Path, line: str, message: str
) -> None:
    stdin = ('{"text": "gut"}\n' + line + "\n").encode()
    ended = kakehashi("translate", model_folder, "--input-format", "jsonl", stdin=stdin)
    assert ended.status == 1
    assert ended.out.count(b"\n") == 1  # the line before it
    assert "error: standard input, line 2" in ended.err
    assert message in ended.err.replace("\n", " ")


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
    "options",
    [
        ["--beam", 0],
        ["--patience", 0.9],
        ["--format", "xml"],
        ["--length-penalty", -1],
        ["--speed", 9],
    ],
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
    assert b"--input-format" in ended.stdout
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


def test_the_first_lines_come_out_while_the_rest_is_still_to_come(model_folder: Path) -> None:
    """With small batches: 32 of them are read ahead, for sentences of like length."""
    words = ["translate", model_folder, "--batch-size", 2, "--beam", 1, "--threads", 1]
    with command(*words, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"gut\n" * 64)
        process.stdin.flush()
        first = [process.stdout.readline() for _ in range(64)]
        process.stdin.write(b"gut\n")
        process.stdin.close()
        rest = process.stdout.read().splitlines(keepends=True)
        assert process.wait() == 0
    assert len(set(first)) == 1
    assert rest == first[:1]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(model_folder: Path, tmp_path: Path) -> None:
    """20,000 lines peak at no more than 2,000 do, give or take 8 MiB."""
    program = (
        "import resource, sys\n"
        "from kakehashi.commands.main import main\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\n"
    )
    words = ["--beam", "1", "--batch-size", "16", "--format", "jsonl", "--threads", "1"]
    peaks = []
    for lines in (2_000, 20_000):
        source, output = tmp_path / f"{lines}.de", tmp_path / f"{lines}.out"
        source.write_text("".join(f"Der Hund schläft {number}.\n" for number in range(lines)))
        files = ["-i", str(source), "-o", str(output)]
        ended = subprocess.run(
            [sys.executable, "-c", program, "translate", str(model_folder), *files, *words],
            capture_output=True,
            check=True,
        )
        peaks.append(int(ended.stderr.splitlines()[-1]) / 1024)
        assert output.read_bytes().count(b"\n") == lines
    assert peaks[1] < peaks[0] + 8
