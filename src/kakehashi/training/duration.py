"""From a time budget to a number of updates.

The first updates of the run itself are timed; nothing is thrown away. That is sound because the
schedule's factor does not depend on the total yet while they are made (``settled_updates``), so a
run given the number from the start goes through the very same weights.
"""

import time
from typing import Any

import lightning
import torch

from kakehashi.data.batching import Batch
from kakehashi.errors import ConfigError
from kakehashi.training.config import CallbacksConfig, TrainerConfig
from kakehashi.training.module import TranslationTask
from kakehashi.training.plan import Plan, updates_in
from kakehashi.training.schedule import Schedule, ScheduleConfig, settled_updates
from kakehashi.training.updates import UpdateCallback
from kakehashi.training.validation import Tally, Validator

TIMED_SHARE = 0.08
"""How much of the budget may go by before the number of updates is fixed."""
WARM = 3
"""First updates that are not representative: memory is still being claimed."""
FEWEST = 10
"""Updates that have to be timed at least."""
PROBED = 5
"""One in so many validation batches is decoded to see what a validation takes."""


def check_budget(schedule: ScheduleConfig) -> None:
    """Refuse a schedule that needs to know the total before anything can be timed.

    Raises:
        ConfigError: saying which settings make a time budget possible.
    """
    if settled_updates(10**9, schedule) < FEWEST:
        raise ConfigError(
            f"trainer.max_minutes times the first {FEWEST} updates or more before the length of "
            f"the run is known, and schedule={schedule.name} with these settings needs it sooner: "
            f"set schedule.warmup_updates to {FEWEST} or more, schedule.plateau above 0, "
            "schedule.decay below 1, or give trainer.max_updates"
        )


def updates_that_fit(
    done: int,
    seconds_left: float,
    seconds_per_update: float,
    seconds_per_validation: float,
    plan: Plan,
    extra_validations: int,
) -> int:
    """The largest total whose updates and validations after ``done`` take ``seconds_left``."""

    def needed(total: int) -> float:
        validations = plan.validations(done, total) + extra_validations
        return (total - done) * seconds_per_update + validations * seconds_per_validation

    low, high = done, done + max(0, int(seconds_left / seconds_per_update)) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if needed(middle) <= seconds_left else (low, middle)
    return low


class TimeBudget(UpdateCallback):
    """Fixes the total of a run that was given minutes."""

    def __init__(
        self,
        plan: Plan,
        schedule: Schedule,
        trainer: TrainerConfig,
        callbacks: CallbacksConfig,
        validator: Validator,
        probes: list[Batch],
        batches_per_epoch: int,
    ) -> None:
        """``probes``: validation batches, about one in PROBED, spread over all lengths."""
        super().__init__()
        check_budget(schedule.config)
        assert trainer.max_minutes is not None
        self.plan, self.schedule, self.config = plan, schedule, trainer
        self.averages = callbacks.averaging.kind != "none"
        self.seconds = 60.0 * trainer.max_minutes
        # Everything that waits for a fraction of the run has to wait for the fraction to be known.
        share = TIMED_SHARE
        if trainer.validate_every < 1:
            share = min(share, 0.9 * trainer.validate_every)
        if callbacks.averaging.start > 0:
            share = min(share, 0.9 * callbacks.averaging.start)
        self.timed_seconds = share * self.seconds
        self.validator, self.probes = validator, probes
        self.batches_per_epoch = batches_per_epoch
        self.warm = 0.0
        """When the first updates were over, without validations."""
        self.validations = 0
        self._warmed = 0.0
        """Seconds of the first updates, in an earlier part of the run."""

    def state_dict(self) -> dict[str, Any]:
        own = {"validations": self.validations, "warm": self.warm - self.started}
        return super().state_dict() | own

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self.validations, self._warmed = state_dict["validations"], state_dict["warm"]

    def on_train_start(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        super().on_train_start(trainer, pl_module)
        self.warm = self.started + self._warmed

    def on_validated(self, trainer: lightning.Trainer, task: TranslationTask) -> None:
        self.validations += 1

    def on_update(self, trainer: lightning.Trainer, task: TranslationTask) -> None:
        if self.plan.total is not None:
            return
        if self.update == WARM:
            self.warm = time.monotonic() - self.validating
        # clocks differ from process to process: the first one's counts
        mine = self._decide(trainer, task) if trainer.is_global_zero else None
        total = trainer.strategy.broadcast(mine)
        if total is not None:
            self.plan.total = self.schedule.total = total
            trainer.fit_loop.epoch_loop.max_steps = total

    def _decide(self, trainer: lightning.Trainer, task: TranslationTask) -> int | None:
        """The total, once it is time to fix it."""
        elapsed = self.elapsed
        if self.update <= WARM:
            return None
        pace = (time.monotonic() - self.validating - self.warm) / (self.update - WARM)
        likely = self.update + int(max(0.0, self.seconds - elapsed) / pace)
        likely = self._capped(likely)
        last_chance = self.update >= settled_updates(likely, self.schedule.config)
        timed = elapsed >= self.timed_seconds or last_chance
        if elapsed < self.seconds and not (timed and self.update >= FEWEST):
            return None
        cost = self._validation_seconds(task)
        left = self.started + self.seconds - time.monotonic()
        total = updates_that_fit(self.update, left, pace, cost, self.plan, int(self.averages))
        total = self._capped(total)
        while settled_updates(total, self.schedule.config) < self.update:
            total += 1
        return total

    def _capped(self, total: int) -> int:
        """At most as many updates as the cap on epochs allows, at least those made."""
        if self.config.epochs_cap is None:
            return total
        most = updates_in(self.config.epochs_cap, self.batches_per_epoch, self.config.accumulate)
        return max(self.update, min(total, most))

    def _validation_seconds(self, task: TranslationTask) -> float:
        if self.validations:
            return self.validating / self.validations
        start = time.monotonic()
        training = task.model.training
        task.model.eval()
        with torch.random.fork_rng():
            for batch in self.probes:
                self.validator.visit(task.model, batch.to(task.device), Tally())
        task.model.train(training)
        pairs = sum(len(batch.index) for batch in self.probes)
        seconds = time.monotonic() - start
        return seconds * len(self.validator.references) / max(pairs, 1)
