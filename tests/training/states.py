"""What of a run's state has to be the same in a run that was stopped."""

import csv
import hashlib
from pathlib import Path

import torch

from kakehashi.training.checkpoint import load_checkpoint

APART = ("seconds", "validating", "spent", "mark", "resumed", "_batches_that_stepped")
"""Times; the record of stops; a counter for the steps of Lightning's own logging, unused here."""


def state_of(path: Path) -> str:
    """A hash of everything in a checkpoint that makes a run what it is."""
    checkpoint = load_checkpoint(path)
    digest = hashlib.sha256()

    def add(value, key=""):
        if isinstance(value, dict):
            for name in sorted(value, key=str):
                if name not in APART:
                    digest.update(str(name).encode())
                    add(value[name], name)
        elif isinstance(value, list | tuple):
            digest.update(str(len(value)).encode())
            for item in value:
                add(item)
        elif isinstance(value, torch.Tensor):
            digest.update(f"{value.dtype}{tuple(value.shape)}".encode())
            digest.update(value.contiguous().numpy().tobytes())
        else:
            digest.update(repr(value).encode())

    add(checkpoint)
    return digest.hexdigest()


def curves(folder: Path) -> list[dict[str, str]]:
    with (folder / "curves" / "metrics.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        del row["train/tokens_per_second"]
    return rows
