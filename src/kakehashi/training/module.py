"""The Lightning module: a translation model with its objective, optimiser and schedule."""

import math
from dataclasses import asdict
from enum import Enum
from typing import Any

import lightning
import torch
from lightning.pytorch.utilities.types import OptimizerLRScheduler
from torch import Tensor

from kakehashi.data.batching import Batch
from kakehashi.errors import Stopped
from kakehashi.models.interface import TranslationModel
from kakehashi.models.transformer import Transformer
from kakehashi.processes import gathered
from kakehashi.training.alignment_head import AlignmentHead
from kakehashi.training.config import ObjectiveConfig, OptimizerConfig
from kakehashi.training.guidance import Guide
from kakehashi.training.memory import enough_memory, in_parts, out_of_memory, padded_size
from kakehashi.training.objective import cross_entropy
from kakehashi.training.optimizer import build_optimizer
from kakehashi.training.schedule import Schedule
from kakehashi.training.sharding import Whole, shard
from kakehashi.training.spoken import Spoken
from kakehashi.training.stopping import StopRequest
from kakehashi.training.tokens import (
    NOMINAL,
    Sums,
    Window,
    clipped,
    drop_gradients,
    exact_type,
    gradient_norm,
    gradient_scale,
    scale_gradients,
    zero_gradients,
)
from kakehashi.training.validation import Tally, Validated, Validator


class Cause(Enum):
    """Why an update was not made."""

    LOSS = "loss"
    """It is not finite."""
    GRADIENT = "gradient"
    """It is not finite though the loss is."""
    SCALE = "scale"
    """Float16's gradients were scaled too high, and will be scaled less: nothing is wrong."""
    MEMORY = "memory"
    """A single pair does not fit."""


class TranslationTask(lightning.LightningModule):
    """One training step, one validation, and what the checkpoint needs to know of the run."""

    def __init__(
        self,
        model: TranslationModel[Any],
        objective: ObjectiveConfig,
        optimizer: OptimizerConfig,
        schedule: Schedule,
        validator: Validator,
        facts: dict[str, Any],
        fused: bool = True,
        guide: Guide | None = None,
        aligning: AlignmentHead | None = None,
        request: StopRequest | None = None,
        whole: Whole | None = None,
    ) -> None:
        """``facts``: plain values to keep in every checkpoint (tokenizer hash, seed, ...).

        ``whole``: another model like this one; then each process trains a share of this one.
        """
        super().__init__()
        self.model = model
        self.objective = objective
        self.optimizer = optimizer
        self.schedule = schedule
        self.validator = validator
        self.facts = facts
        self.fused = fused
        self.guide = guide
        self.aligning = aligning
        self.request = StopRequest() if request is None else request
        self.whole = whole
        self.spoken = Spoken(model)
        self.tally = Tally()
        self.validated: Validated | None = None
        """The latest validation."""
        self.window = Window()
        self.loss = 0.0
        """What the latest update minimised, a mean over its target tokens."""
        self.nll = 0.0
        """Of the latest update, in nats a target token."""
        self.gradient_norm = 0.0
        """Of the latest update, before it was clipped."""
        self.tokens = 0
        """Real source and target tokens trained on so far, by this process."""
        self.largest_part: int | None = None
        """Padded tokens of a batch that still goes through whole; None: of any batch."""
        self.cause: Cause | None = None
        """Why the latest update was skipped; None: it was made."""
        self.suspects: list[tuple[list[int], float]] = []
        """Of a skipped update: the pairs of each batch of this process, and its loss a token."""

    def configure_model(self) -> None:
        """Lightning calls this once all processes know of each other."""
        if self.whole is not None:
            assert isinstance(self.model, Transformer)  # no other is let through (TrainConfig)
            assert self.device_mesh is not None
            shard(self.model, self.device_mesh["data_parallel"])

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """The summed loss of the batch's real target tokens, over ``NOMINAL`` (see tokens.py).

        A process that is alone gets a stand-in, and the pass itself is made in ``backward``: only
        there nothing else holds on to a pass that has failed for want of memory.
        """
        self.window.add(batch)
        if self.trainer.world_size == 1:
            device, dtype = batch.source.device, exact_type(self.model)
            return torch.ones((), device=device, dtype=dtype, requires_grad=True)
        with enough_memory(batch):
            sums = self.sums(batch)
        self.window.sums.append(sums.detach())
        return sums[0] / NOMINAL

    def backward(self, loss: Tensor, *args: Any, **kwargs: Any) -> None:
        """Add the gradients of the batch, in parts where memory is short.

        When memory runs out, the update is begun again in smaller parts, every batch with the
        random numbers it began with; later updates are made in such parts from the start.
        """
        window = self.window
        if self.trainer.world_size > 1:
            with enough_memory(window.batches[-1]):
                loss.backward()
            return
        while window.too_large is None and (failed := self._passes(loss.detach())):
            drop_gradients(self.parameters())
            window.restart()
            if len(failed.index) > 1:
                self.largest_part = padded_size(failed) // 2
            else:
                window.too_large = failed
                zero_gradients(self.parameters())  # gradient scaling wants to see some

    def _passes(self, factor: Tensor) -> Batch | None:
        """Add the gradients of the batches that wait; the part that memory did not suffice for.

        The stand-in of 1 comes back as ``factor``: what Lightning multiplies a loss by.
        """
        window = self.window
        for place in range(len(window.sums), len(window.batches)):
            batch = window.batches[place]
            window.set_random(place)
            sums_of_parts = []
            for part in in_parts(batch, self.largest_part):
                try:
                    with self.trainer.precision_plugin.forward_context():
                        sums = self.sums(part)
                    (sums[0] / NOMINAL).backward(factor.to(sums))
                except (RuntimeError, MemoryError) as error:
                    if not out_of_memory(error):
                        raise
                    return part
                sums_of_parts.append(sums.detach())
            window.sums.append(torch.stack(sums_of_parts).sum(0))
        return None

    def sums(self, batch: Batch) -> Tensor:
        """[4]: minimised loss, -log p, target tokens, source tokens, summed over the batch.

        The first carries the gradient: label-smoothed cross-entropy, and the guided heads' loss.
        """
        allowed = batch.source_allowed
        features, guidance = self._features(batch)
        # rows by number: the gradient of a selection by mask takes three times as long
        real = batch.target_allowed.flatten().nonzero().squeeze(1)
        loss = cross_entropy(
            features.flatten(0, 1).index_select(0, real),
            self.spoken.weight(self.model),
            None,
            self.spoken.number(batch.target_output.flatten().index_select(0, real)),
            self.objective.label_smoothing,
            self.objective.chunk,
        )
        minimised = loss.smoothed * len(real)
        if guidance is not None:
            minimised = minimised + guidance
        nll, targets = loss.nll * len(real), batch.target_allowed.sum()
        parts = (minimised, nll, targets, allowed.sum())
        return torch.stack([part.to(minimised.dtype) for part in parts])

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: int | float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Make the gradients those of the mean over all tokens of the update, and clip them.

        Lightning calls this before every update, clipping or not. It is the one place where an
        update waits for the device.
        """
        window = self.window
        mine = window.total()
        everyone = self._over_processes(mine)
        norm = gradient_norm(self.parameters()).to(everyone)
        numbers = torch.cat([everyone, mine, norm.reshape(1)]).tolist()
        sums, own, raw_norm = Sums(*numbers[:4]), Sums(*numbers[4:8]), numbers[8]
        accumulate = self.trainer.accumulate_grad_batches
        scale = gradient_scale(sums.targets, accumulate, self.trainer.world_size)
        self.loss, self.nll = sums.minimised / sums.targets, sums.nll / sums.targets
        self.gradient_norm = scale * raw_norm
        self.cause = self._cause(self.loss, raw_norm)
        self.suspects = [] if self.cause is None else window.suspects()
        window.clear()
        if self.cause is None:
            self.tokens += int(own.targets + own.sources)
            scale_gradients(self.parameters(), clipped(scale, raw_norm, gradient_clip_val))
        else:
            drop_gradients(self.parameters())

    def _cause(self, loss: float, norm: float) -> Cause | None:
        """Why the update cannot be made; the same answer in every process."""
        if self.window.too_large is not None:
            return Cause.MEMORY
        if not math.isfinite(loss):
            return Cause.LOSS
        if math.isfinite(norm):
            return None
        scaler = getattr(self.trainer.precision_plugin, "scaler", None)
        return Cause.GRADIENT if scaler is None or scaler.get_scale() <= 1.0 else Cause.SCALE

    def _over_processes(self, sums: Tensor) -> Tensor:
        if self.trainer.world_size == 1:
            return sums
        everyone = sums.clone()
        torch.distributed.all_reduce(everyone)
        return everyone

    def _features(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Decoder outputs, and the weighted summed loss of the guided heads while there is one."""
        source, allowed = batch.source, batch.source_allowed
        weight = 0.0 if self.guide is None else self.guide.weight(self.global_step)
        if weight == 0.0 and self.aligning is None:
            return self.model.features(source, allowed, batch.target_input), None
        features, cross = self.model.attending_features(source, allowed, batch.target_input)
        target, real = batch.target_output, batch.target_allowed
        losses = []
        if self.guide is not None and weight > 0.0:
            losses.append(weight * self.guide.loss(cross, source, target, allowed, real))
        if self.aligning is not None:
            losses.append(self.aligning.loss(cross, batch))
        return features, torch.stack(losses).sum()

    def on_validation_epoch_start(self) -> None:
        self.tally = Tally()
        if self.whole is not None:
            self.whole.take(self.model, self.device)

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Gather one batch; the scores are formed over all of them."""
        if self.request.number:
            return  # there is nothing to save in the middle of a validation
        model = self.model if self.whole is None else self.whole.model.eval()
        self.validator.visit(model, batch, self.tally)

    def on_validation_epoch_end(self) -> None:
        """The scores of all processes' batches.

        Raises:
            Stopped: in every process, when one of them was asked to.
        """
        if self.whole is not None:
            self.whole.release()
        heard = gathered((self.tally, self.request.number))
        if number := max(number for _, number in heard):
            raise Stopped(number)
        self.validated = self.validator.result([tally for tally, _ in heard])

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """One optimiser; its rates follow the schedule from update to update."""
        optimizer = build_optimizer(self.model, self.optimizer, self.fused)

        def factor(update: int) -> float:
            # a plain function: of an object LambdaLR would put all attributes into checkpoints
            return self.schedule(update)

        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": scheduler, "interval": "step"},
        }

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Beside Lightning's own: the length of the run, counts, and the facts."""
        checkpoint["kakehashi"] = self.facts | {
            "total_updates": self.schedule.total,
            "tokens": self.tokens,
            "validated": None if self.validated is None else asdict(self.validated),
        }

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        state = checkpoint["kakehashi"]
        self.tokens = state["tokens"]
        self.validated = None if state["validated"] is None else Validated(**state["validated"])
