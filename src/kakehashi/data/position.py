"""Where a run stands in its training data, as plain numbers that a checkpoint keeps."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from kakehashi.errors import DataError


class EpochPosition(ABC):
    """An epoch, and how many of its batches were handed out to this process.

    What these batches are is a pure function of (seed, epoch), which the heirs of this class know.
    """

    def __init__(self, *, seed: int, rank: int, world_size: int) -> None:
        self._seed, self._rank, self._world_size = seed, rank, world_size
        self.epoch = 0
        self.position = 0
        """Batches of this epoch that were handed out."""

    @abstractmethod
    def __len__(self) -> int:
        """Batches an epoch; the same in every epoch and for every process."""

    def share(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The rows of a batch that are this process's: every world_size-th of them."""
        return rows[self._rank :: self._world_size]

    def set_epoch(self, epoch: int) -> None:
        """Take this epoch's order; a new epoch starts at its first batch."""
        if epoch != self.epoch:
            self.epoch, self.position = epoch, 0

    def state_dict(self) -> dict[str, Any]:
        """The position, and what the order depends on."""
        return {
            "epoch": self.epoch,
            "position": self.position,
            "seed": self._seed,
            "batches": len(self),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on after the last batch handed out; raises DataError for another order's state."""
        if (state["seed"], state["batches"]) != (self._seed, len(self)):
            raise DataError(
                f"the saved position belongs to seed {state['seed']} and {state['batches']} "
                f"batches an epoch, this run has seed {self._seed} and {len(self)}: the same "
                "corpus, tokenizer, seed, and number of processes times data.batch_tokens are "
                "needed to go on"
            )
        self.epoch, self.position = int(state["epoch"]), int(state["position"])
        if self.position >= len(self):
            self.epoch, self.position = self.epoch + 1, 0
