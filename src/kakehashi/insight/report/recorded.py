"""What a run has recorded for its report."""

import csv
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kakehashi.data.reading import write_bytes
from kakehashi.errors import EvaluationError

ANALYSIS, ATTENTION, REPORT = "analysis.json", "attention.json", "report.html"
CURVES = Path("curves") / "metrics.csv"
_RESUME = ("resume:", "resume_changed:")


@dataclass(frozen=True)
class Recorded:
    """All that the page is made of."""

    summary: dict[str, Any]
    analysis: dict[str, Any] | None
    """None without a test split."""
    viewer: str | None
    """HTML of the attention viewer; None without a test split, empty where nothing is readable."""
    curves: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    """Of each column of the curves the updates and finite values."""
    config: str = ""
    overrides: str = ""

    @classmethod
    def read(cls, folder: Path, summary: dict[str, Any]) -> "Recorded":
        """From a run's folder.

        Raises:
            EvaluationError: when a file is missing or damaged.
        """
        analysis = attention = None
        if summary["test"]["scores"] is not None:
            analysis = read_json(folder / ANALYSIS)
            attention = read_json(folder / ATTENTION)["viewer"]
        config = _text(folder / "config.yaml")
        return cls(
            summary,
            analysis,
            attention,
            _curves(folder / CURVES),
            # where the run lay when it was gone on with is no part of what it is
            "".join(line for line in config.splitlines(True) if not line.startswith(_RESUME)),
            _text(folder / "overrides.yaml"),
        )


def read_json(path: Path) -> dict[str, Any]:
    """An object from a file of the run's folder.

    Raises:
        EvaluationError: when it is not there or damaged.
    """
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EvaluationError(
            f"{path} cannot be read ({error}); the run has written it at its end, and a report "
            "cannot be made without it"
        ) from error
    if not isinstance(read, dict):
        raise EvaluationError(f"{path} is damaged: it holds no object")
    return read


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write what ``read_json`` reads, whole or not at all."""
    dumped = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    write_bytes(path, dumped.encode("utf-8", "replace"))


def _text(path: Path) -> str:
    """Empty where there is none: a run that was started from Python has written no words."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluationError(f"{path} cannot be read: {error}") from error


def _curves(path: Path) -> dict[str, list[tuple[int, float]]]:
    found: dict[str, list[tuple[int, float]]] = {}
    if not path.exists():
        return found
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            for row in csv.DictReader(stream):
                update = int(row.pop("step"))
                for name, said in row.items():
                    if said and math.isfinite(value := float(said)):
                        found.setdefault(name, []).append((update, value))
    except (OSError, UnicodeDecodeError, KeyError, ValueError, TypeError) as error:
        raise EvaluationError(f"{path} is damaged ({error})") from error
    return found
