"""`kakehashi average`: the mean of checkpoints of a run, as a model folder."""

from pathlib import Path
from typing import Annotated

import typer

from kakehashi.errors import BundleError, TrainingError


def average(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="RUN | CHECKPOINT...", help="A finished run, or files of one."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The model folder to make; none may be there.")
    ],
    last: Annotated[
        int | None, typer.Option(min=1, help="Of a RUN: average its newest so many checkpoints.")
    ] = None,
    best: Annotated[
        int | None,
        typer.Option(min=1, help="Of a RUN: average the so many with the best validation BLEU."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(help="Score on these sentences, and not on the run's validation text."),
    ] = None,
    reference: Annotated[Path | None, typer.Option(help="Their true translations.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto: a GPU if there is one.")] = "cpu",
) -> None:
    """Average checkpoints of one run into a model folder, with scores before and after.

    The validation text is found by the run's config.yaml, from the folder in which the run was
    started.
    """
    if (source is None) != (reference is None):
        raise typer.BadParameter("--source and --reference go together")
    folder = paths[0].is_dir() or (last, best) != (None, None)
    if folder and (len(paths) > 1 or (last is None) == (best is None)):
        raise typer.BadParameter(
            "give one RUN with --last NUMBER or --best NUMBER, or else the checkpoints themselves"
        )
    run = run_of(paths[0], folder=folder)
    output = output.expanduser()
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise BundleError(f"{output} exists already; give another name or move it away")

    from kakehashi.commands.averaged import make_average
    from kakehashi.commands.kept import best_checkpoints, last_checkpoints

    if last is not None:
        paths = last_checkpoints(run, last)
    elif best is not None:
        paths = best_checkpoints(run, best)
    text = None if source is None or reference is None else (source, reference)
    typer.echo(make_average(run, paths, output, text, device))


def run_of(path: Path, *, folder: bool) -> Path:
    """The finished run that is meant by its folder, or by one of its checkpoints.

    Raises:
        TrainingError: when there is none, or it has no model yet.
    """
    if not path.exists():
        raise TrainingError(f"{path} does not exist")
    run = path if folder else path.absolute().parent.parent
    if not (run / "config.yaml").is_file():
        where = f"{path} is" if folder else f"{path} does not stand in the checkpoints/ of"
        raise TrainingError(f"{where} no run folder: there is no {run / 'config.yaml'}")
    if not (run / "model").is_dir() or not (run / "summary.json").is_file():
        raise TrainingError(
            f"the run {run} has not finished: the mean gets its tokenizer and its settings from "
            "the model folder that a run writes at its end, and there is none yet"
        )
    return run
