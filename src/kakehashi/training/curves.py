"""The curves of a run on disk: CSV for everybody, events for TensorBoard."""

import csv
from pathlib import Path

from lightning.pytorch.loggers import CSVLogger, Logger, TensorBoardLogger
from torch import Tensor

from kakehashi.training.config import LoggerConfig

FOLDER = "curves"


def curve_loggers(config: LoggerConfig, folder: Path, resumed: int | None) -> list[Logger]:
    """What the configuration asks for, writing into ``folder``/curves.

    With ``resumed``, the update that a run goes on from, its curves up to there are kept, and what
    was written after it is left out: it comes again.
    """
    loggers = list[Logger]()
    if config.csv:
        earlier = [] if resumed is None else _rows(folder / FOLDER / "metrics.csv", resumed)
        logger = CSVLogger(folder, name="", version=FOLDER)
        for step, metrics in earlier:
            logger.log_metrics(metrics, step)
        loggers.append(logger)
    if config.tensorboard:
        purge = None if resumed is None else resumed + 1
        loggers.append(TensorBoardLogger(folder, name="", version=FOLDER, purge_step=purge))
    return loggers


def _rows(path: Path, until: int) -> list[tuple[int, dict[str, Tensor | float]]]:
    """Step and values of the rows up to an update; none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        rows = [(int(row.pop("step")), row) for row in csv.DictReader(stream)]
    return [
        (step, {name: float(value) for name, value in row.items() if value})
        for step, row in rows
        if step <= until
    ]
