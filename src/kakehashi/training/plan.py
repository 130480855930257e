"""How long a run is, and when it validates: what schedule, callbacks and loop agree on."""

from dataclasses import dataclass

from kakehashi.training.config import TrainerConfig


@dataclass
class Plan:
    """The run in updates. ``total`` stays None until a time budget has been turned into it."""

    total: int | None
    validate_every: float
    """Below 1 a fraction of the total, else a number of updates."""

    @classmethod
    def of(cls, config: TrainerConfig, batches_per_epoch: int) -> "Plan":
        """The plan of a run over a corpus of so many batches."""
        total = config.max_updates
        if config.max_epochs is not None:
            total = updates_in(config.max_epochs, batches_per_epoch, config.accumulate)
        return cls(total, config.validate_every)

    def validates_at(self, update: int) -> bool:
        """Whether there is a validation after this update (counted from 1)."""
        if update == self.total:
            return True
        interval = self.interval(self.total)
        return interval is not None and update % interval == 0

    def interval(self, total: int | None) -> int | None:
        """Updates from one validation to the next; None while it is not known."""
        if self.validate_every >= 1:
            return int(self.validate_every)
        # rounded up, so that the last regular validation is not just before the end
        return None if total is None else max(1, -int(-self.validate_every * total // 1))

    def validations(self, after: int, total: int) -> int:
        """How many validations a run of ``total`` updates still has after some update."""
        interval = self.interval(total)
        assert interval is not None
        return total // interval - after // interval + (total % interval > 0)


def updates_in(epochs: int, batches: int, accumulate: int) -> int:
    """Updates that epochs of so many batches take; an update may reach into the next epoch."""
    return -(-epochs * batches // accumulate)
