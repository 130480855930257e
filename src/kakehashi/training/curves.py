"""The curves of a run on disk: CSV for everybody, events for TensorBoard."""

import csv
import io
from argparse import Namespace
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import Logger, TensorBoardLogger
from lightning.pytorch.utilities import rank_zero_only

from kakehashi.data.reading import write_bytes
from kakehashi.training.config import LoggerConfig

FOLDER = "curves"
FILE = "metrics.csv"
OFTEN = 50
"""Rows after which the file is written even though no checkpoint is."""


def curve_loggers(config: LoggerConfig, folder: Path, resumed: int | None) -> list[Logger]:
    """What the configuration asks for, writing into ``folder``/curves.

    With ``resumed``, the update that a run goes on from, its curves up to there are kept, and what
    was written after it is left out: it comes again.
    """
    loggers = list[Logger]()
    if config.csv:
        loggers.append(CurveFile(folder / FOLDER / FILE, resumed))
    if config.tensorboard:
        purge = None if resumed is None else resumed + 1
        loggers.append(TensorBoardLogger(folder, name="", version=FOLDER, purge_step=purge))
    return loggers


class CurveFile(Logger):
    """A CSV file with a row for each time that something was measured; whole at any moment.

    (Lightning's own removes what an earlier part of a run has written before it writes anew.)
    """

    def __init__(self, path: Path, resumed: int | None) -> None:
        super().__init__()
        self.path = path
        self._rows = [] if resumed is None else _rows(path, resumed)
        self._unwritten = 0

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def version(self) -> str:
        return FOLDER

    @rank_zero_only
    def log_hyperparams(self, params: dict[str, Any] | Namespace, *_: Any, **__: Any) -> None:
        """They stand in config.yaml."""

    @rank_zero_only
    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        self._rows.append({"step": str(step), **{k: repr(float(v)) for k, v in metrics.items()}})
        self._unwritten += 1
        if self._unwritten >= OFTEN:
            self.save()

    @rank_zero_only
    def save(self) -> None:
        """Write the file anew, beside the old one."""
        if not self._unwritten:
            return
        names = sorted({name for row in self._rows for name in row} - {"step"})
        text = io.StringIO(newline="")
        table = csv.DictWriter(text, ["step", *names], restval="", lineterminator="\n")
        table.writeheader()
        table.writerows(self._rows)
        write_bytes(self.path, text.getvalue().encode())
        self._unwritten = 0

    def finalize(self, status: str) -> None:
        self.save()


def _rows(path: Path, until: int) -> list[dict[str, str]]:
    """The rows up to an update, as they stand in the file; none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if int(row["step"]) <= until]
    return [{name: value for name, value in row.items() if value} for row in rows]
