"""`kakehashi runs`: what has been tried, how far it came, how good it was, what was different."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kakehashi.commands.tables import columns
from kakehashi.data.notes import note
from kakehashi.errors import DataError

if TYPE_CHECKING:
    from kakehashi.commands.record import Record

NAMES = ("name", "runs", "data.root")
"""Settings that say where things lie, and not what a run is."""


class Sort(StrEnum):
    """What stands first."""

    time = "time"
    score = "score"


def runs(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Of runs, at any depth; or one run's.")
    ] = Path("runs"),
    sort: Annotated[
        Sort, typer.Option(help="time: the newest first. score: by validation BLEU.")
    ] = Sort.time,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines, one a run.")] = False,
) -> None:
    """List runs: status, updates, best validation BLEU, test BLEU, and what was set differently."""
    from kakehashi.commands.record import find_runs, read_record

    if not folder.is_dir():
        raise DataError(f"there is no folder {folder} (looked from {Path.cwd()})")
    found, foreign = find_runs(folder)
    for path in foreign:
        note(f"{path} holds no run, and is left out")
    records = [read_record(path) for path in found]
    for record in records:
        if record.trouble:
            note(record.trouble)
    records.sort(key=lambda record: record.started, reverse=True)
    usual = usual_settings([record.settings for record in reversed(records)])
    if sort is Sort.score:
        records.sort(key=lambda r: -1.0 if r.valid_bleu is None else r.valid_bleu, reverse=True)
    for line in _json(records, usual) if as_json else _table(folder, records, usual):
        typer.echo(line)


def usual_settings(settings: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The settings in which runs differ, each with the value that most of them have.

    Of values that are equally frequent, that of the run that stands first. A setting that a run
    lacks (those of another kind of model, say) does not set it apart.
    """
    usual = {}
    for name in dict.fromkeys(name for one in settings for name in one if name not in NAMES):
        values = [one[name] for one in settings if name in one]
        told = Counter(json.dumps(value) for value in values)
        if len(told) > 1:
            usual[name] = json.loads(told.most_common(1)[0][0])
    return usual


def differences(record: "Record", usual: dict[str, Any]) -> dict[str, Any]:
    """What sets a run apart."""
    own = record.settings
    return {n: own[n] for n, value in usual.items() if n in own and own[n] != value}


def _table(folder: Path, records: list["Record"], usual: dict[str, Any]) -> Iterator[str]:
    if not records:
        note(f"{folder} holds no run")
        return
    heads = ["run", "status", "updates", "valid BLEU", "test BLEU", "minutes", "different settings"]
    rows = [heads]
    for record in records:
        apart = _words(differences(record, usual))
        name = record.folder.relative_to(folder) if record.folder != folder else folder
        rows.append(
            [
                str(name),
                record.status,
                _updates(record),
                _number(record.valid_bleu, 2),
                _number(record.test_bleu, 2),
                _number(None if record.seconds is None else record.seconds / 60, 1),
                apart,
            ]
        )
    yield from columns(rows, numbers=(2, 3, 4, 5))
    if usual:
        yield f"\nwhere nothing else is said: {_words(usual)}"
    stopped = [record for record in records if record.status == "stopped" and record.updates]
    if stopped:
        yield "\nto go on with what was stopped:"
        yield from (f"  kakehashi train resume={record.folder}" for record in stopped)


def _json(records: list["Record"], usual: dict[str, Any]) -> Iterator[str]:
    for record in records:
        facts = {
            "run": str(record.folder),
            "started": record.started.isoformat(timespec="seconds"),
            "status": record.status,
            "updates": record.updates,
            "total_updates": record.total_updates,
            "valid_bleu": record.valid_bleu,
            "test_bleu": record.test_bleu,
            "seconds": record.seconds,
            "differences": differences(record, usual),
            "trouble": record.trouble or None,
        }
        yield json.dumps(facts, ensure_ascii=False)


def _updates(record: "Record") -> str:
    if record.status == "finished" and record.updates == record.total_updates:
        return f"{record.updates:,}"
    total = "?" if record.total_updates is None else f"{record.total_updates:,}"
    return f"{record.updates:,}/{total}"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _words(settings: dict[str, Any]) -> str:
    """As they are typed."""
    return " ".join(
        f"{name}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in settings.items()
    )
