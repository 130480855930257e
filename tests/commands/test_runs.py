"""`kakehashi runs` over folders of every state, most of them made by hand."""

import json
import os
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from kakehashi.commands.lock import held
from kakehashi.commands.record import Record, find_runs, read_record
from kakehashi.commands.runs import differences, usual_settings
from kakehashi.training.checkpoint import write_checkpoint

SETTINGS = {"trainer.max_updates": 40, "seed": 1, "model.name": "rnn", "data.root": "data"}


def made(folder: Path, **settings: Any) -> Path:
    """A run folder with a configuration."""
    folder.mkdir(parents=True)
    nested: dict[str, Any] = {}
    for name, value in (SETTINGS | settings).items():
        group, _, last = name.rpartition(".")
        (nested.setdefault(group, {}) if group else nested)[last] = value
    (folder / "config.yaml").write_text(json.dumps(nested), encoding="utf-8")  # JSON is YAML
    return folder


def finished(folder: Path, valid: float, test: float | None, updates: int = 40) -> Path:
    summary = {
        "training": {
            "updates": updates,
            "total_updates": 40,
            "seconds": 90.0,
            "validated": {"bleu": valid, "nll": 1.0},
        },
        "test": {"scores": None if test is None else {"bleu": {"value": test}}},
    }
    (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    return folder


def saved(folder: Path, update: int, bleu: float, total: int | None = 40) -> Path:
    """Let a run have written a checkpoint."""
    content = {
        "global_step": update,
        "callbacks": {"Checkpoints": {"best": {"update": update, "nll": 1.0, "bleu": bleu}}},
        "kakehashi": {"total_updates": total},
    }
    write_checkpoint(content, folder / "checkpoints" / f"update-{update}.ckpt")
    return folder


def listed(done: Any) -> dict[str, dict[str, Any]]:
    assert done.status == 0, done.err
    rows = [json.loads(line) for line in done.out.decode().splitlines()]
    return {Path(row["run"]).name: row for row in rows}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Runs of two names, of all states."""
    runs = tmp_path / "runs"
    finished(made(runs / "a" / "2026-01-02_03-04-05-000001"), 20.5, 19.25)
    finished(made(runs / "a" / "2026-01-02_03-04-06-000001", seed=2), 22.0, None, 30)
    saved(made(runs / "b" / "stopped"), 10, 3.5)
    saved(made(runs / "b" / "failed", **{"model.name": "transformer"}), 10, 4.5)
    (runs / "b" / "failed" / "failed.txt").write_text("the loss is nan\n", encoding="utf-8")
    saved(made(runs / "b" / "unscored"), 40, 9.5)
    (runs / "b" / "unscored" / "model-without-scores").mkdir()
    (runs / "a" / "latest").symlink_to("2026-01-02_03-04-06-000001", target_is_directory=True)
    return runs


def test_each_run_with_its_state_and_scores(kakehashi, folder):
    rows = listed(kakehashi("runs", folder, "--json"))
    facts = ("status", "updates", "total_updates", "valid_bleu", "test_bleu", "seconds")
    assert {name: tuple(row[f] for f in facts) for name, row in rows.items()} == {
        "2026-01-02_03-04-05-000001": ("finished", 40, 40, 20.5, 19.25, 90.0),
        "2026-01-02_03-04-06-000001": ("finished", 30, 40, 22.0, None, 90.0),
        "stopped": ("stopped", 10, 40, 3.5, None, None),
        "failed": ("failed", 10, 40, 4.5, None, None),
        "unscored": ("unscored", 40, 40, 9.5, None, None),
    }
    assert rows["failed"]["differences"] == {"model.name": "transformer"}
    assert rows["2026-01-02_03-04-06-000001"]["differences"] == {"seed": 2}
    assert rows["stopped"]["differences"] == {}
    assert rows["2026-01-02_03-04-05-000001"]["started"].startswith("2026-01-02T03:04:05")


def test_the_table_for_people(kakehashi, folder):
    done = kakehashi("runs", folder, "--sort", "score")
    lines = done.out.decode().splitlines()
    assert [line.split()[:3] for line in lines[1:6]] == [
        ["a/2026-01-02_03-04-06-000001", "finished", "30/40"],
        ["a/2026-01-02_03-04-05-000001", "finished", "40"],
        ["b/unscored", "unscored", "40/40"],
        ["b/failed", "failed", "10/40"],
        ["b/stopped", "stopped", "10/40"],
    ]
    assert lines[2].split()[3:] == ["20.50", "19.25", "1.5"]
    assert lines[1].endswith("  seed=2")
    assert lines[4].endswith("  model.name=transformer")
    assert "where nothing else is said: seed=1 model.name=rnn" in lines
    assert lines[-1] == f"  kakehashi train resume={folder / 'b' / 'stopped'}"
    assert f"{folder / 'b' / 'failed'} failed: the loss is nan" in done.err


def test_the_newest_stand_first(kakehashi, folder):
    for i, name in enumerate(("stopped", "unscored", "failed")):
        os.utime(folder / "b" / name / "config.yaml", (1.9e9 + i, 1.9e9 + i))
    names = list(listed(kakehashi("runs", folder, "--json")))
    assert names[:3] == ["failed", "unscored", "stopped"]
    assert names[3:] == ["2026-01-02_03-04-06-000001", "2026-01-02_03-04-05-000001"]


def test_a_run_that_holds_its_lock_is_running(folder):
    run = folder / "b" / "failed"
    with held(run):
        assert read_record(run).status == "running"
    assert read_record(run).status == "failed"


def test_a_run_that_went_on_has_not_failed(folder):
    run = folder / "b" / "failed"
    later = (run / "failed.txt").stat().st_mtime + 5
    os.utime(saved(run, 20, 6.0) / "checkpoints" / "update-20.ckpt", (later, later))
    record = read_record(run)
    assert (record.status, record.updates, record.valid_bleu) == ("stopped", 20, 6.0)


def test_before_the_first_checkpoint(folder):
    record = read_record(made(folder / "c" / "new", **{"trainer.max_updates": None}))
    assert (record.status, record.updates, record.total_updates) == ("stopped", 0, None)
    assert record.valid_bleu is None


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("summary.json", b"{", "summary.json cannot be read"),
        ("summary.json", b'{"training": {}}', "summary.json is damaged: it lacks 'test'"),
        ("summary.json", b"[]", "summary.json is damaged"),
        ("config.yaml", b"a: [", "config.yaml is damaged (while parsing"),
        ("config.yaml", b"\xff\xfe\x00", "config.yaml"),
        ("config.yaml", b"- 1", "config.yaml is damaged: it holds no settings of a run"),
        ("config.yaml", b"trainer: ${nobody}", "config.yaml is damaged"),
        ("checkpoints/update-99.ckpt", b"PK", "update-99.ckpt"),
        ("failed.txt", b"\xff\xfe", "stopped"),
    ],
)
def test_what_is_damaged_is_named_and_the_rest_listed(kakehashi, folder, name, content, said):
    run = folder / "b" / "stopped"
    (run / name).write_bytes(content)
    done = kakehashi("runs", folder, "--json")
    rows = listed(done)
    assert len(rows) == 5
    assert said in done.err
    if name != "failed.txt":
        assert rows["stopped"]["status"] == "damaged"
        assert said in rows["stopped"]["trouble"]


def test_foreign_folders_are_named_once(kakehashi, folder):
    (folder / "notes" / "deep" / "deeper").mkdir(parents=True)
    (folder / "a" / "empty").mkdir()
    (folder / "a" / "readme.txt").touch()
    done = kakehashi("runs", folder, "--json")
    assert len(listed(done)) == 5
    for path in (folder / "notes", folder / "a" / "empty"):
        assert f"{path} holds no run, and is left out" in done.err
    assert "deep holds" not in done.err
    assert find_runs(folder / "b" / "stopped") == ([folder / "b" / "stopped"], [])


def test_no_folder_and_no_runs(kakehashi, tmp_path):
    done = kakehashi("runs", tmp_path / "missing")
    assert done.status == 1
    assert f"there is no folder {tmp_path / 'missing'}" in done.err
    done = kakehashi("runs", tmp_path)
    assert done.status == 0
    assert (done.out, done.err) == (b"", f"{tmp_path} holds no run\n")


def test_a_real_run_is_read(kakehashi, finished_run):
    rows = listed(kakehashi("runs", finished_run.parents[1], "--json"))
    row = rows[finished_run.name]
    summary = json.loads((finished_run / "summary.json").read_text(encoding="utf-8"))
    assert row["status"] == "finished"
    assert row["valid_bleu"] == summary["training"]["validated"]["bleu"]
    assert row["test_bleu"] == summary["test"]["scores"]["bleu"]["value"]
    assert row["updates"] == 40


def test_a_real_run_that_was_stopped_is_read(finished_run, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(finished_run / "checkpoints", run / "checkpoints")
    shutil.copy(finished_run / "config.yaml", run)
    points = json.loads((finished_run / "summary.json").read_text())["training"]["points"]
    record = read_record(run)
    assert (record.status, record.updates, record.total_updates) == ("stopped", 40, 40)
    assert record.valid_bleu == pytest.approx(max(p["bleu"] for p in points), rel=1e-6)


def test_what_most_runs_have_is_usual():
    runs = [{"seed": 3, "x": 1, "name": "a"}, {"seed": 2, "x": 1}, {"seed": 2, "x": 1, "y": [4]}]
    assert usual_settings(runs) == {"seed": 2}
    assert usual_settings(runs[:2]) == {"seed": 3}
    assert usual_settings([]) == {}


def test_settings_of_another_kind_of_model_set_nothing_apart():
    settings = {"model.name": "rnn", "model.d_hidden": 4}
    record = Record(Path("run"), datetime.now().astimezone(), settings=settings)
    usual = {"model.name": "transformer", "model.n_heads": 2}
    assert differences(record, usual) == {"model.name": "rnn"}
