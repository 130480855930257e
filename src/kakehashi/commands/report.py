"""`kakehashi report`: the report and the model card of a run, made anew from what it recorded."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from kakehashi.errors import EvaluationError


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
) -> None:
    """Write report.html and the model's README.md of a run again, byte for byte.

    Both are made of what the run's folder holds: no model is loaded and nothing is measured.
    """
    run = run.expanduser()
    check_finished(run)
    from kakehashi.commands.reporting import regenerate

    for path in regenerate(run):
        typer.echo(path)


def check_finished(run: Path) -> None:
    """Refuse what is no run, and a run that has not come to its end.

    Raises:
        EvaluationError: saying what to do.
    """
    from kakehashi.commands.lock import is_held

    if not run.is_dir():
        raise EvaluationError(f"{run} does not exist" if not run.exists() else f"{run} is a file")
    if (run / "summary.json").is_file():
        return
    if not (run / "config.yaml").is_file():
        raise EvaluationError(
            f"{run} is no run folder: there is no {run / 'config.yaml'}; name a folder such as "
            "runs/NAME/DATE, or runs/NAME/latest"
        )
    if is_held(run):
        raise EvaluationError(f"the run {run} is still going on: it writes its report at its end")
    raise EvaluationError(
        f"the run {run} has not finished, and there is nothing to report yet; to go on with it: "
        f"kakehashi train resume={shlex.quote(str(run))}"
    )
