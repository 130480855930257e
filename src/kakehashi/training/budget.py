"""The token budget of a batch that fills the memory at hand (``data.batch_tokens=auto``).

Batches of the longest pairs go through the model at growing budgets, forwards and backwards, and
their peak of memory is measured. It grows in a straight line with the budget, as long as the
sentences are the same, so the budget for nine tenths of the memory lies on the line through the two
largest. What was found is written down: a run that goes on, or is repeated, does not measure again.
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from kakehashi.data.batching import Batch
from kakehashi.data.reading import write_bytes
from kakehashi.errors import ConfigError
from kakehashi.training import usage
from kakehashi.training.config import TrainerConfig
from kakehashi.training.memory import out_of_memory
from kakehashi.training.module import TranslationTask
from kakehashi.training.tokens import NOMINAL, drop_gradients

SMALLEST = 1024
"""The budget that measuring starts with; it is doubled from then on. Nothing less is found."""
SHARE = 0.9
"""Of the memory."""
SECONDS = 20.0
"""After which nothing larger is measured: on a CPU large batches take long."""
TRUSTED = 2.0
"""How far beyond the largest budget that was measured the line is followed."""
STEP = 256
"""Budgets are multiples of it."""
COPIES = 4
"""Of all parameters that training keeps beside them: gradients, two moments, an average."""

FILE = "batch_tokens.json"


@dataclass(frozen=True)
class Budget:
    """A budget and what it was made of."""

    batch_tokens: int
    available: int
    """Bytes that passes could take."""
    measured: list[tuple[int, int]]
    """Budgets, and the bytes that a pass took."""


def find_budget(
    took: Callable[[int], int | None], available: int, most: int, seconds: float = SECONDS
) -> Budget:
    """The largest budget whose passes take SHARE of the ``available`` bytes, at most ``most``.

    ``took``: bytes that a pass of a batch of so many padded tokens takes; None: memory did not
    suffice.

    Raises:
        ConfigError: when not even the smallest batch fits.
    """
    limit, measured = SHARE * available, list[tuple[int, int]]()
    most = max(most, SMALLEST)
    size, start, enough = SMALLEST, time.monotonic(), False
    while size <= most and not enough:
        taken = took(size)
        enough = taken is None or taken > limit or time.monotonic() - start >= seconds
        if taken is not None:
            measured.append((size, taken))
        size *= 2
    if not measured or measured[0][1] > limit:
        raise ConfigError(
            f"data.batch_tokens=auto: a batch of {SMALLEST:,} tokens does not fit into the "
            f"{available / 1e9:.1f} GB that are free; take a smaller model or data.max_length"
        )
    found = min(_on_the_line(measured[-2:], limit), TRUSTED * measured[-1][0], most)
    return Budget(max(SMALLEST, int(found) // STEP * STEP), available, measured)


def _on_the_line(points: list[tuple[int, int]], limit: float) -> float:
    """Where the line through two points, or through one and the origin, meets the limit."""
    (x, y), (x_before, y_before) = points[-1], points[0] if len(points) > 1 else (0, 0)
    slope = (y - y_before) / (x - x_before)
    return x + (limit - y) / slope if slope > 0 else float("inf")


def measured_budget(
    task: TranslationTask,
    longest: Callable[[int], Batch],
    trainer: TrainerConfig,
    most: int,
    file: Path,
) -> int:
    """What ``file`` says, or else what the memory of this machine allows; then ``file`` says so.

    The model is left as it was, and no random number is used up.

    Raises:
        ConfigError: with several processes, or where memory cannot be measured.
    """
    if file.exists():
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return int(found["batch_tokens"])
    if trainer.devices * trainer.num_nodes > 1:
        raise ConfigError(
            "data.batch_tokens=auto measures one process, and there would be "
            f"{trainer.devices * trainer.num_nodes}: find the number with trainer.devices=1 first, "
            "then give it"
        )
    cuda = trainer.accelerator != "cpu" and torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    task.to(device)
    free = usage.available(device)
    if free is None or usage.peak(device) is None:
        raise ConfigError(
            "data.batch_tokens=auto: this system does not tell how much memory is used; give a "
            "number"
        )
    kept = COPIES * sum(p.numel() * p.element_size() for p in task.parameters())
    training = task.training
    with torch.random.fork_rng():
        took = _Passes(task.train(), longest, trainer.precision, device)
        budget = find_budget(took, max(0, free - kept), most)
    task.train(training).to("cpu")
    if cuda:
        torch.cuda.empty_cache()
    write_bytes(file, f"{json.dumps(asdict(budget))}\n".encode())
    return budget.batch_tokens


class _Passes:
    """Forward and backward, measured."""

    def __init__(
        self,
        task: TranslationTask,
        longest: Callable[[int], Batch],
        precision: str,
        device: torch.device,
    ) -> None:
        self.task, self.longest, self.device = task, longest, device
        self.autocast = {"bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}.get(precision)
        # of the CPU: freed memory stays with the process, so that only the first is what it was
        self.before = usage.current(device) or 0

    def __call__(self, tokens: int) -> int | None:
        batch = self.longest(tokens).to(self.device)
        usage.start_peak(self.device)
        try:
            with torch.autocast(self.device.type, self.autocast, enabled=self.autocast is not None):
                sums = self.task.sums(batch)
            (sums[0] / NOMINAL).backward()
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            return None
        finally:
            drop_gradients(self.task.parameters())
        return max(0, (usage.peak(self.device) or 0) - self.before)
