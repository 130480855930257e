"""`kakehashi report`: the same bytes again, or one sentence that says why there are none."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kakehashi.commands.lock import held
from kakehashi.commands.reporting import attention_viewer, readable
from kakehashi.inference.translator import Translator

WRITTEN = ("report.html", "model/README.md")


@pytest.fixture
def copy(finished_run: Path, tmp_path: Path) -> Path:
    """The finished run in another place, without what a report writes."""
    folder = tmp_path / "moved away" / "run"
    shutil.copytree(finished_run, folder, ignore=shutil.ignore_patterns("checkpoints"))
    for name in WRITTEN:
        (folder / name).unlink()
    return folder


def test_the_report_and_the_card_come_back_byte_for_byte(
    finished_run: Path, copy: Path, tmp_path: Path
) -> None:
    (tmp_path / "matplotlibrc").write_text("svg.fonttype: none\nfont.size: 31\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "kakehashi.commands.main", "report", "run"],
        cwd=copy.parent,
        env=os.environ
        | {
            "TZ": "Asia/Kathmandu",
            "LC_ALL": "tr_TR.UTF-8",
            "PYTHONHASHSEED": "4711",
            "MATPLOTLIBRC": str(tmp_path),
        },
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "run/report.html\nrun/model/README.md\n"
    for name in WRITTEN:
        assert (copy / name).read_bytes() == (finished_run / name).read_bytes()


def test_it_is_made_of_what_was_recorded_and_not_of_what_is_measured_now(
    kakehashi: Any, copy: Path
) -> None:
    path = copy / "summary.json"
    summary = json.loads(path.read_text(encoding="utf-8"))
    summary["versions"]["torch"] = "1.2.3+abacus"
    summary["machine"]["platform"] = "Babbage-1837"
    summary["test"]["scores"]["bleu"]["value"] = 77.25
    path.write_text(json.dumps(summary), encoding="utf-8")
    assert kakehashi("report", copy).status == 0
    page, card = ((copy / name).read_text(encoding="utf-8") for name in WRITTEN)
    for text in (page, card):
        assert "1.2.3+abacus" in text
        assert "Babbage-1837" in text
        assert "77.25" in text
        assert summary["corpus"]["sha256"]["train"] in text


def test_no_folder_of_the_machine_is_in_the_card(kakehashi: Any, copy: Path) -> None:
    path = copy / "summary.json"
    summary = json.loads(path.read_text(encoding="utf-8"))
    typed = "kakehashi train data.train.source=/home/me/x.de 'a=[/home/me/y z.de,b/c.en]' n=1/2"
    summary["reproduce"] = typed
    path.write_text(json.dumps(summary), encoding="utf-8")
    assert kakehashi("report", copy).status == 0
    card = (copy / "model" / "README.md").read_text(encoding="utf-8")
    assert "`kakehashi train data.train.source=x.de 'a=[y z.de,b/c.en]' n=1/2`" in card
    assert "/home" not in card


def test_the_test_split_stands_beside_its_translations(finished_run: Path) -> None:
    sides = [
        (finished_run / f"test_{name}.txt").read_text(encoding="utf-8").split("\n")[:-1]
        for name in ("source", "translations", "reference")
    ]
    summary = json.loads((finished_run / "summary.json").read_text(encoding="utf-8"))
    samples = [(s["source"], s["translation"], s["reference"]) for s in summary["samples"]]
    assert list(zip(*sides, strict=True)) == samples
    analysis = json.loads((finished_run / "analysis.json").read_text(encoding="utf-8"))
    assert analysis["sentences"] == len(samples)


def test_a_model_that_was_moved_away_has_its_card_with_it(kakehashi: Any, copy: Path) -> None:
    shutil.rmtree(copy / "model")
    done = kakehashi("report", copy)
    assert (done.status, done.out.decode()) == (0, f"{copy / 'report.html'}\n")


def test_a_run_that_has_not_finished(kakehashi: Any, copy: Path) -> None:
    (copy / "summary.json").unlink()
    done = kakehashi("report", copy)
    assert done.status == 1
    assert "has not finished" in done.err
    assert f"kakehashi train resume='{copy}'" in done.err
    with held(copy):
        done = kakehashi("report", copy)
    assert done.status == 1
    assert "is still going on" in done.err
    assert not (copy / "report.html").exists()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("analysis.json", None, "analysis.json cannot be read"),
        ("attention.json", "[]", "attention.json is damaged"),
        ("summary.json", "{", "summary.json cannot be read"),
        ("summary.json", "{}", "lacks what a report is made of"),
        ("summary.json", "[]", "lacks what a report is made of"),
    ],
)
def test_what_is_missing_or_damaged_is_named(
    kakehashi: Any, copy: Path, name: str, content: str | None, said: str
) -> None:
    (copy / name).unlink()
    if content is not None:
        (copy / name).write_text(content, encoding="utf-8")
    done = kakehashi("report", copy)
    assert done.status == 1
    assert said in done.err
    assert "Traceback" not in done.err
    assert len(done.err.splitlines()) == 1
    assert not (copy / "report.html").exists()


def test_what_is_no_run(kakehashi: Any, tmp_path: Path) -> None:
    for folder, said in ((tmp_path, "is no run folder"), (tmp_path / "x", "does not exist")):
        done = kakehashi("report", folder)
        assert done.status == 1
        assert said in done.err


def test_a_heavy_viewer_shows_the_best_translation_alone(finished_run: Path) -> None:
    translator = Translator.load(finished_run)
    lines = ["Der Hund schläft.", "Die Katze schläft."]
    both = [attention_viewer(translator, lines, heavy) for heavy in (10**9, 0)]
    found = [re.findall(r"<script type=.application/json.>(.*?)</script>", one) for one in both]
    full, alone = (json.loads(data)["scenes"] for (data,) in found)
    for ours, theirs in zip(full, alone, strict=True):
        assert len(ours["paths"]) == 2  # the beam
        assert [path["text"] for path in theirs["paths"]] == [ours["paths"][0]["text"]]
    assert attention_viewer(translator, []) == ""


def test_sentences_of_evenly_spread_lengths_are_shown() -> None:
    lengths = [*range(1, 41)] * 3
    lines = ["x"] * len(lengths)
    chosen = readable(lengths, lines, 28)
    assert [lengths[i] for i in chosen] == [4, 7, 9, 12, 15, 17, 20, 23, 25, 28]
    assert [lengths[i] for i in readable(lengths, lines, 10)] == [4, 5, 5, 6, 7, 7, 8, 9, 9, 10]
    assert len(set(readable([6] * 30, ["x"] * 30, 28))) == 10
    # few, too short, too long, blank
    assert readable([2, 9, 99, 5], ["x", "y", "z", "\u200b"], 28) == [0, 1]
    assert readable([99], ["z"], 28) == []
    assert readable([], [], 28) == []
