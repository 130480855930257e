"""The table of a sweep: what was tried, and what came of it."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kakehashi.data.reading import write_bytes


@dataclass(frozen=True)
class Row:
    """One trial."""

    trial: int
    settings: dict[str, str]
    """What was searched, as it would be typed."""
    validation_bleu: float | None
    """None for a run that failed."""
    test_bleu: float | None
    minutes: float | None
    folder: str
    reproduce: str
    """The command that repeats the run."""
    error: str | None


def row(trial: int, settings: dict[str, str], folder: str, bleu: float) -> Row:
    """A run that came to its end, with what its summary says."""
    path = Path(folder) / "summary.json"
    summary: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    scores = summary["test"]["scores"]
    minutes = sum(summary["seconds"].values()) / 60
    test_bleu = None if scores is None else scores["bleu"]["value"]
    command = summary["reproduce"]
    return Row(trial, settings, bleu, test_bleu, minutes, folder, command, None)


def best(rows: Sequence[Row]) -> Row | None:
    """The row with the highest validation BLEU, the earliest of them."""
    scored = [row for row in rows if row.validation_bleu is not None]
    return max(scored, key=lambda row: row.validation_bleu or 0.0, default=None)


def write_table(rows: Sequence[Row], folder: Path) -> str:
    """Write sweep.json, sweep.csv and sweep.txt into the sweep's folder; returns the text."""
    winner = best(rows)
    facts = {
        "best": None if winner is None else winner.trial,
        "trials": [asdict(row) for row in rows],
    }
    dumped = json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
    write_bytes(folder / "sweep.json", dumped.encode())
    header, *body = _cells(rows)
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([header, *body])
    write_bytes(folder / "sweep.csv", stream.getvalue().encode())
    text = _text(header, body, winner)
    write_bytes(folder / "sweep.txt", text.encode())
    return text


def _cells(rows: Sequence[Row]) -> list[list[str]]:
    names = list(dict.fromkeys(name for row in rows for name in row.settings))
    table = [["trial", *names, "validation BLEU", "test BLEU", "minutes", "folder"]]
    for row in rows:
        searched = [row.settings.get(name, "") for name in names]
        figures = [row.validation_bleu, row.test_bleu, row.minutes]
        shown = ["" if figure is None else f"{figure:.2f}" for figure in figures]
        if row.error is not None:
            shown[0] = "failed"
        table.append([str(row.trial), *searched, *shown, row.folder])
    return table


def _text(header: list[str], body: list[list[str]], winner: Row | None) -> str:
    table = [header, *body]
    widths = [max(len(line[k]) for line in table) for k in range(len(header))]
    lines = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in table]
    if winner is not None:
        lines += ["", f"The best is trial {winner.trial}. The same run again:"]
        lines.append(f"  {winner.reproduce}")
    return "\n".join(lines) + "\n"
