"""Updates that cannot be made: skipped, counted, recorded, and in the end a reason to stop.

What is skipped leaves weights, the optimiser's memory and averages as they were; the update still
counts, so that the schedule and the length of the run stay what they are.
"""

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import lightning
from lightning.pytorch.plugins import MixedPrecision, Precision

from kakehashi.data.notes import note
from kakehashi.data.reading import write_bytes
from kakehashi.errors import TrainingError
from kakehashi.processes import gathered
from kakehashi.training.module import Cause, TranslationTask
from kakehashi.training.updates import UpdateCallback

SAYS = {
    Cause.LOSS: "the loss is not finite",
    Cause.GRADIENT: "the gradient is not finite",
    Cause.MEMORY: "a pair does not fit into memory, even alone",
}
ADVICE = {
    Cause.LOSS: "a lower learning rate (optimizer.learning_rate, optimizer.muon_learning_rate), "
    "more schedule.warmup_updates, trainer.precision=32-true, or look for broken pairs among them",
    Cause.MEMORY: "a smaller data.max_length",
}
ADVICE[Cause.GRADIENT] = ADVICE[Cause.LOSS]


@dataclass
class FaultCounts:
    """What went wrong in a run, and what was done."""

    skipped: int = 0
    """Updates that were not made, because loss or gradient was not finite or memory missing."""
    in_a_row: int = 0
    overflows: int = 0
    """Updates not made in 16-mixed while its gradient scaling looked for a factor: no faults."""
    largest_part: int | None = None
    """Padded tokens a batch may have before it goes through in parts; None: memory sufficed."""
    full_precision_from: int | None = None
    """The update after which mixed precision was given up."""

    def __str__(self) -> str:
        """For the summary; empty when all went well."""
        said = []
        if self.skipped:
            said.append(f"{self.skipped:,} updates skipped")
        if self.largest_part is not None:
            said.append(f"batches in parts of {self.largest_part:,} tokens for want of memory")
        if self.full_precision_from is not None:
            said.append(f"in 32-true from update {self.full_precision_from + 1:,} on")
        return "; ".join(said) + " (faults.jsonl)" if said else ""


def only_number(index: int) -> dict[str, Any]:
    """What is known of a training pair without its corpus."""
    return {"index": index}


class Faults(UpdateCallback):
    """Records every fault in a file, says it, and after ``limit`` in a row falls back or stops."""

    def __init__(
        self,
        limit: int,
        path: Path,
        batches_per_epoch: int,
        pair: Callable[[int], dict[str, Any]] = only_number,
    ) -> None:
        """``pair``: where a training pair comes from and what it says."""
        super().__init__()
        self.limit, self.path, self.pair = limit, path, pair
        self.batches_per_epoch = batches_per_epoch
        self.counts = FaultCounts()

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"faults": asdict(self.counts)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self.counts = FaultCounts(**state_dict["faults"])

    def on_train_start(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule
    ) -> None:
        super().on_train_start(trainer, pl_module)
        assert isinstance(pl_module, TranslationTask)
        pl_module.largest_part = self.counts.largest_part
        if self.counts.full_precision_from is not None:
            trainer.strategy.precision_plugin = Precision()
        if trainer.is_global_zero:
            self._forget_after(trainer.global_step)

    def _forget_after(self, update: int) -> None:
        """A run that is taken up again meets what came after its checkpoint a second time."""
        if not self.path.exists():
            return
        # at LF alone: the text of a pair may hold other separators. What follows the last one was
        # cut off when the run was
        whole = self.path.read_bytes().split(b"\n")[:-1]
        kept = [line + b"\n" for line in whole if json.loads(line)["update"] <= update]
        write_bytes(self.path, b"".join(kept))

    def on_update(self, trainer: lightning.Trainer, task: TranslationTask) -> None:
        if task.largest_part != self.counts.largest_part:
            self._say_parts(trainer, task)
        if task.cause is None:
            self.counts.in_a_row = 0
        elif task.cause is Cause.SCALE:
            self.counts.overflows += 1
        else:
            self.counts.skipped += 1
            self.counts.in_a_row += 1
            self._record_skipped(trainer, task, task.cause)
            if self.counts.in_a_row >= self.limit:
                self._fall_back(trainer, task.cause)

    def _say_parts(self, trainer: lightning.Trainer, task: TranslationTask) -> None:
        self.counts.largest_part = task.largest_part
        self._record(trainer, {"action": "split", "largest_part": task.largest_part})
        self._note(
            trainer,
            f"out of memory: from this update on batches of more than {task.largest_part:,} padded "
            "tokens go through in parts, with the same result but for rounding and dropout; "
            "a smaller data.batch_tokens avoids it",
        )

    def _record_skipped(
        self, trainer: lightning.Trainer, task: TranslationTask, cause: Cause
    ) -> None:
        mine = [
            {"process": trainer.global_rank, "loss": number(loss), "pairs": rows}
            for rows, loss in task.suspects
        ]
        everyone = gathered(mine)
        batches: list[dict[str, Any]] = [batch for own in everyone for batch in own]
        for batch in batches:
            batch["pairs"] = [self.pair(index) for index in batch["pairs"]]
        self._record(
            trainer,
            {
                "action": "skipped",
                "cause": cause.value,
                "epoch": trainer.fit_loop.total_batch_idx // self.batches_per_epoch,
                "loss": number(task.loss),
                "gradient_norm": number(task.gradient_norm),
                "batches": batches,
            },
        )
        self._note(trainer, f"{SAYS[cause]}; the update is skipped, its pairs are in {self.path}")

    def _fall_back(self, trainer: lightning.Trainer, cause: Cause) -> None:
        plugin, counts = trainer.strategy.precision_plugin, self.counts
        if isinstance(plugin, MixedPrecision) and cause is not Cause.MEMORY:
            # the weights are those of the last finite update: what was skipped has not changed them
            trainer.strategy.precision_plugin = Precision()
            counts.full_precision_from, counts.in_a_row = self.update, 0
            self._record(trainer, {"action": "32-true", "cause": cause.value})
            self._note(
                trainer,
                f"{self.limit} times in a row in {plugin.precision}: the run goes on in 32-true, "
                "from the weights of the last update that was made",
            )
            return
        raise TrainingError(
            f"update {self.update:,}: {SAYS[cause]}, {self.limit} times in a row "
            f"(trainer.max_faults), so the run stops; {self.path} holds the pairs of each; try "
            f"{ADVICE[cause]}"
        )

    def _record(self, trainer: lightning.Trainer, facts: dict[str, Any]) -> None:
        if not trainer.is_global_zero:
            return
        line = json.dumps({"update": self.update, **facts}, ensure_ascii=False, allow_nan=False)
        try:
            with self.path.open("a", encoding="utf-8") as stream:
                stream.write(line + "\n")
        except OSError as error:
            raise TrainingError(f"cannot write {self.path}: {error.strerror or error}") from error

    def _note(self, trainer: lightning.Trainer, text: str) -> None:
        if trainer.is_global_zero:
            note(f"update {self.update:,}: {text}")


def number(value: float) -> float | str:
    """JSON has no NaN and no infinity: they are written as text."""
    return value if math.isfinite(value) else str(value)
