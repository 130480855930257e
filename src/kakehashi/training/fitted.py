"""What a training run came to."""

from dataclasses import asdict, dataclass
from typing import Any

from kakehashi.training.callbacks import Point
from kakehashi.training.validation import Validated


@dataclass(frozen=True)
class Fitted:
    """What a run came to. The model holds the chosen weights."""

    updates: int
    total_updates: int
    """What the schedule was made for; more than ``updates`` when the run was stopped early."""
    epochs: float
    tokens: int
    """Real source and target tokens seen, by one process."""
    seconds: float
    """Training and validations."""
    validation_seconds: float
    saving_seconds: float
    """Writing checkpoints."""
    points: list[Point]
    chosen: str
    """Which weights: ``average`` or ``best``."""
    chosen_update: int
    validated: Validated
    """Of the chosen weights."""
    average: Validated | None
    resumed: list[int]
    """The updates that the run went on from, where it was stopped."""
    is_main: bool
    """Whether this process is the one that writes the results."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values for the record."""
        plain = asdict(self)
        del plain["is_main"]
        return plain
