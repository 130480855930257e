"""Dropout as a pure function of (seed, batch, process).

So no state of a random generator has to be kept, on any device or process: a run that goes on from
batch n draws what it would have drawn there, whatever has drawn numbers in between.
"""

from typing import Any

import lightning
import numpy as np
import torch
from lightning.pytorch.callbacks import Callback


class SeededBatches(Callback):
    """Seeds torch's generators before each batch."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def on_train_batch_start(
        self,
        trainer: lightning.Trainer,
        pl_module: lightning.LightningModule,
        batch: Any,
        batch_idx: int,
    ) -> None:
        number = trainer.fit_loop.epoch_loop.total_batch_idx
        torch.manual_seed(batch_seed(self.seed, number, trainer.global_rank))


def batch_seed(seed: int, batch: int, process: int) -> int:
    """32 well-mixed bits: torch's CPU generator takes no more."""
    return int(np.random.SeedSequence([seed, batch, process]).generate_state(1)[0])
