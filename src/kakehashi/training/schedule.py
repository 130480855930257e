"""Learning-rate schedules: pure functions of the update, the total and the warm-up.

Each gives a factor for the optimiser's learning rates; ``update`` counts the updates already made.
All warm up linearly, ``(update + 1) / warmup_updates``, so that the first update moves something.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from kakehashi.errors import ConfigError


@dataclass
class ScheduleConfig:
    """How the learning rates change during the run."""

    name: str = "linear"
    """constant, inverse_square_root, cosine, linear or warmup_stable_decay."""
    warmup_updates: int = 10
    """Updates until the full learning rate."""
    plateau: float = 0.4
    """linear: the fraction of the run after which the rate starts to fall to ``final``."""
    decay: float = 0.2
    """warmup_stable_decay: the fraction of the run, at its end, in which the rate falls."""
    final: float = 0.0
    """Factor at the end of the run (linear, cosine, warmup_stable_decay)."""

    def __post_init__(self) -> None:
        if self.name not in SHAPES:
            raise ConfigError(f"schedule.name is {self.name!r}; it can be {', '.join(SHAPES)}")
        if self.warmup_updates < 0:
            raise ConfigError(
                f"schedule.warmup_updates is {self.warmup_updates}: it cannot be negative"
            )
        for setting in ("plateau", "decay", "final"):
            value = getattr(self, setting)
            if not 0.0 <= value <= 1.0:
                raise ConfigError(f"schedule.{setting} is {value}: it must be between 0 and 1")


def warmup(update: int, warmup_updates: int) -> float:
    """Linear rise to 1 at the last warm-up update, 1 from there on."""
    return min(1.0, (update + 1) / warmup_updates) if warmup_updates else 1.0


def constant(update: int, total: int, config: ScheduleConfig) -> float:
    """1 after the warm-up."""
    return warmup(update, config.warmup_updates)


def inverse_square_root(update: int, total: int, config: ScheduleConfig) -> float:
    """``sqrt(warmup / update)`` after the warm-up (Vaswani et al., 2017, equation 3, peak 1)."""
    start = max(config.warmup_updates, 1)
    return warmup(update, start) * min(1.0, math.sqrt(start / (update + 1)))


def linear(update: int, total: int, config: ScheduleConfig) -> float:
    """1 until ``plateau`` of the run, then a straight line down to ``final`` at its end."""
    left = 1.0 - _progress(update, config.plateau * total, total)
    return warmup(update, config.warmup_updates) * _between(config.final, left)


def cosine(update: int, total: int, config: ScheduleConfig) -> float:
    """Half a cosine from 1 after the warm-up down to ``final`` (Loshchilov and Hutter, 2017)."""
    done = _progress(update, config.warmup_updates, total)
    left = 0.5 * (1.0 + math.cos(math.pi * done))
    return warmup(update, config.warmup_updates) * _between(config.final, left)


def warmup_stable_decay(update: int, total: int, config: ScheduleConfig) -> float:
    """1 until the last ``decay`` of the run, then down as ``1 - sqrt`` (Hägele et al., 2024)."""
    done = _progress(update, (1.0 - config.decay) * total, total)
    return warmup(update, config.warmup_updates) * _between(config.final, 1.0 - math.sqrt(done))


def _progress(update: int, start: float, end: float) -> float:
    """How far ``update`` is from start to end, in [0, 1]."""
    return min(1.0, max(0.0, (update - start) / (end - start))) if end > start else 0.0


def _between(final: float, left: float) -> float:
    return final + (1.0 - final) * left


SHAPES: dict[str, Callable[[int, int, ScheduleConfig], float]] = {
    "constant": constant,
    "inverse_square_root": inverse_square_root,
    "linear": linear,
    "cosine": cosine,
    "warmup_stable_decay": warmup_stable_decay,
}


def settled_updates(total: int, config: ScheduleConfig) -> int:
    """How many updates of a run of ``total`` go by before the total has any say in the factor.

    A run whose length is found by timing has to have found it by then.
    """
    if config.name in ("constant", "inverse_square_root"):
        return total
    if config.name == "linear":
        return int(config.plateau * total)
    if config.name == "warmup_stable_decay":
        return int((1.0 - config.decay) * total)
    return min(config.warmup_updates, total)


class Schedule:
    """A schedule whose total may still be unknown while it is settled.

    Usable as the function of ``torch.optim.lr_scheduler.LambdaLR``; its state is plain numbers.
    """

    def __init__(self, config: ScheduleConfig, total: int | None) -> None:
        self.config = config
        self.total = total

    def __call__(self, update: int) -> float:
        """The factor for the update that comes after ``update`` updates."""
        if self.total is None:
            if self.config.name == "inverse_square_root":
                return inverse_square_root(update, 0, self.config)
            return warmup(update, self.config.warmup_updates)
        return SHAPES[self.config.name](update, self.total, self.config)
