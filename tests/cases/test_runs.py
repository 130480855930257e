"""Runs that share a folder with something else: nothing that was there is changed or removed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def train(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "kakehashi.commands.main", "train", *words],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def content(folder: Path) -> dict[str, bytes]:
    """Every file but those that Hydra keeps for itself."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.parametrize(
    ("remains", "named"),
    [
        ("checkpoints/best.ckpt", "checkpoints"),
        pytest.param("model/config.json", "model", marks=pytest.mark.slow),
        pytest.param("summary.json", "summary.json", marks=pytest.mark.slow),
    ],
)
def test_a_second_run_into_a_folder_is_refused(tmp_path: Path, remains: str, named: str) -> None:
    for name in (remains, "config.yaml", "ledger.jsonl"):
        (tmp_path / "run" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "run" / name).write_text(f"{name} of the first run")
    before = content(tmp_path)
    ended = train(tmp_path, "hydra.run.dir=run")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"{tmp_path / 'run'} holds a run already ({named})" in ended.stderr
    assert content(tmp_path) == before


@pytest.mark.parametrize(
    "word",
    [
        pytest.param("hydra.run.dir=.", marks=pytest.mark.slow),
        pytest.param("hydra.run.dir=runs", marks=pytest.mark.slow),
        "hydra.run.dir=runs/new",
    ],
)
def test_a_run_that_cannot_start_removes_nothing_but_its_own_folder(
    word: str, tmp_path: Path
) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "notes.txt").write_text("mine")
    before = content(tmp_path)
    ended = train(tmp_path, word, "trainer.max_epochs=2")
    assert ended.returncode == 1
    assert "exactly one of trainer.max_updates" in ended.stderr
    assert content(tmp_path) == before
    assert not (tmp_path / "runs" / "new").exists()
