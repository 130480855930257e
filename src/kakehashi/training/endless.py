"""Batches without an end: Lightning sees one long epoch, and the loader counts its own.

What Lightning does at the end of an epoch (an update of the batches that are left, another fetch,
counters set back) is then no part of a run, and a run can stop and go on anywhere.
"""

from collections.abc import Iterator
from typing import Any

from kakehashi.data.batching import Batch
from kakehashi.data.loader import Loader
from kakehashi.data.streaming import ENDLESS, StreamLoader
from kakehashi.errors import DataError
from kakehashi.processes import gathered


class EndlessLoader:
    """The batches of a loader, epoch after epoch."""

    def __init__(self, loader: Loader | StreamLoader, world_size: int = 1, rank: int = 0) -> None:
        if not len(loader):
            raise DataError("there is no batch to train on")
        self.loader, self._world_size, self._rank = loader, world_size, rank

    def __len__(self) -> int:
        return ENDLESS

    def __iter__(self) -> Iterator[Batch]:
        while True:
            yield from self.loader

    def state_dict(self) -> dict[str, Any]:
        """Where the loader stands, in every process: all of them have to ask at the same time."""
        return {"processes": gathered(self.loader.state_dict())}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Let the next iteration go on after the last batch handed out.

        Raises:
            DataError: for the state of another number of processes, or of another order.
        """
        states = state["processes"]
        if len(states) != self._world_size:
            raise DataError(
                f"the saved position is that of {len(states)} processes, and now there are "
                f"{self._world_size}: the batches would be others; resume with as many as before"
            )
        self.loader.load_state_dict(states[self._rank])
