"""`kakehashi compare`: finished runs side by side."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from kakehashi.commands.tables import columns
from kakehashi.errors import EvaluationError


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, each with a summary.json.")],
) -> None:
    """Print the scores, sizes and times of finished runs side by side."""
    summaries = [read_summary(run) for run in runs]
    typer.echo(table(summaries))


def read_summary(run: Path) -> dict[str, Any]:
    """The summary.json of a run folder.

    Raises:
        EvaluationError: when there is none, or it is damaged.
    """
    path = run / "summary.json"
    try:
        summary: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise EvaluationError(
            f"{path} does not exist; `kakehashi compare` takes folders of runs that have finished"
        ) from None
    except (OSError, ValueError) as error:
        raise EvaluationError(f"{path} cannot be read: {error}") from error
    return summary


def table(summaries: list[dict[str, Any]]) -> str:
    """One column a run."""
    facts = [_column(summary) for summary in summaries]
    cells = [[name, *(column[name] for column in facts)] for name in facts[0]]
    lines = columns(cells, numbers=range(1, len(cells[0])))
    signatures = {
        s["test"]["scores"][m]["signature"]
        for s in summaries
        if s["test"]["scores"]
        for m in ("bleu", "chrf")
    }
    return "\n".join([*lines, "", *(f"signature: {s}" for s in sorted(signatures))])


def _column(summary: dict[str, Any]) -> dict[str, str]:
    training, test = summary["training"], summary["test"]
    return {
        "": summary["name"],
        "test BLEU": _score(test, "bleu"),
        "test chrF": _score(test, "chrf"),
        "parameters": f"{summary['parameters']:,}",
        "updates": f"{training['updates']:,}",
        "epochs": f"{training['epochs']:.1f}",
        "training, minutes": f"{training['seconds'] / 60:.1f}",
        "decoding, sentences/s": f"{test['sentences_per_second']:.0f}",
        "beam": str(test["decoding"]["beam"]),
        "seed": str(summary["seed"]),
    }


def _score(test: dict[str, Any], metric: str) -> str:
    if test["scores"] is None:
        return "-"
    score = test["scores"][metric]
    return f"{score['value']:.2f} [{score['low']:.2f}, {score['high']:.2f}]"
