"""What a run's folder tells of it: how far it has come, how good it is, how it was set."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from kakehashi.commands.compare import read_summary
from kakehashi.commands.lock import is_held
from kakehashi.commands.saved import flat_settings, saved_config
from kakehashi.errors import EvaluationError, KakehashiError

UNSCORED = "model-without-scores"
"""The model until it is scored: what is left of hours of training should scoring fail."""
FAILED = "failed.txt"
"""The error that ended the run, while no later checkpoint says that it went on."""
SIGNS = ("config.yaml", "summary.json", "checkpoints")
"""A folder that holds one of these is a run's."""


@dataclass
class Record:
    """One run."""

    folder: Path
    started: datetime
    status: str = "stopped"
    """finished, running, stopped, failed, unscored (trained, but not scored) or damaged."""
    updates: int = 0
    total_updates: int | None = None
    """None where a run by the clock or by epochs has written no checkpoint yet."""
    valid_bleu: float | None = None
    """Of the weights that were kept; while the run lasts, the best so far."""
    test_bleu: float | None = None
    seconds: float | None = None
    """Training with its validations; None until it has ended."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Every setting by its whole name."""
    trouble: str = ""
    """What is wrong with the folder."""


def find_runs(folder: Path) -> tuple[list[Path], list[Path]]:
    """(run folders at any depth, the topmost folders without one that can be read).

    Links are not followed: ``latest`` is a run that stands in the list already.
    """
    if any((folder / name).exists() for name in SIGNS):
        return [folder], []
    runs, foreign = list[Path](), list[Path]()
    try:
        paths = sorted(folder.iterdir())
    except PermissionError:
        return [], []
    for path in paths:
        if path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
            inside, others = find_runs(path)
            runs += inside
            foreign += others if inside else [path]
    return runs, foreign


def read_record(folder: Path) -> Record:
    """All that there is to know; what cannot be read makes the record ``damaged``, no error."""
    record = Record(folder, _started(folder))
    try:
        record.settings = flat_settings(saved_config(folder))
        record.total_updates = record.settings.get("trainer.max_updates")
        if (folder / "summary.json").exists():
            _finished(record)
        else:
            _so_far(record)
    except (KakehashiError, OSError) as error:
        record.status, record.trouble = "damaged", str(error)
    return record


def _finished(record: Record) -> None:
    summary = read_summary(record.folder)
    try:
        training, scores = summary["training"], summary["test"]["scores"]
        record.updates, record.total_updates = training["updates"], training["total_updates"]
        record.valid_bleu, record.seconds = training["validated"]["bleu"], training["seconds"]
        record.test_bleu = None if scores is None else scores["bleu"]["value"]
    except (KeyError, TypeError) as error:
        path = record.folder / "summary.json"
        raise EvaluationError(f"{path} is damaged: it lacks {error}") from error
    record.status = "finished"


def _so_far(record: Record) -> None:
    folder = record.folder
    newest = max((folder / "checkpoints").glob("*.ckpt"), key=_written, default=None)
    failed = folder / FAILED
    if is_held(folder):
        record.status = "running"
    elif failed.exists() and (newest is None or _written(failed) >= _written(newest)):
        record.status = "failed"
        said = failed.read_text(encoding="utf-8", errors="replace").strip()
        record.trouble = f"{folder} failed: {said}"
    elif (folder / UNSCORED).exists():
        record.status = "unscored"
    if newest is None:
        return
    # loads torch, and so only where it is needed
    from kakehashi.training.snapshot import read_progress

    progress = read_progress(newest)
    record.updates, record.valid_bleu = progress.update, progress.best_bleu
    record.total_updates = progress.total_updates or record.total_updates


def _written(path: Path) -> float:
    return path.stat().st_mtime


def _started(folder: Path) -> datetime:
    """From the folder's name, which is the time; or when its configuration was written."""
    if found := re.match(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d", folder.name):
        return datetime.strptime(found[0], "%Y-%m-%d_%H-%M-%S").astimezone()
    config = folder / "config.yaml"
    written = (config if config.exists() else folder).stat().st_mtime
    return datetime.fromtimestamp(written).astimezone()
