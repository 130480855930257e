"""The Lightning module: a translation model with its objective, optimiser and schedule."""

from dataclasses import asdict
from typing import Any

import lightning
import torch
from lightning.pytorch.utilities.types import OptimizerLRScheduler
from torch import Tensor

from kakehashi.data.batching import Batch
from kakehashi.models.interface import TranslationModel
from kakehashi.training.config import ObjectiveConfig, OptimizerConfig
from kakehashi.training.guidance import Guide
from kakehashi.training.objective import cross_entropy
from kakehashi.training.optimizer import build_optimizer
from kakehashi.training.schedule import Schedule
from kakehashi.training.validation import Tally, Validated, Validator


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
    ) -> None:
        """``facts``: plain values to keep in every checkpoint (tokenizer hash, seed, ...)."""
        super().__init__()
        self.model = model
        self.objective = objective
        self.optimizer = optimizer
        self.schedule = schedule
        self.validator = validator
        self.facts = facts
        self.fused = fused
        self.guide = guide
        self.spoken = _Spoken(model)
        self.tally = Tally()
        self.validated: Validated | None = None
        """The latest validation."""
        self.loss = torch.zeros(())
        """What the latest training batch was minimised for."""
        self.nll = 0.0
        """Of the latest training batch, in nats a token."""
        self.tokens = 0
        """Real source and target tokens trained on so far, by this process."""

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Mean label-smoothed cross-entropy of the batch's real target tokens."""
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
        self.nll = loss.nll.item()
        self.tokens += int(allowed.sum()) + len(real)
        minimised = loss.smoothed if guidance is None else loss.smoothed + guidance
        self.loss = minimised.detach()
        return minimised

    def _features(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Decoder outputs, and the weighted loss of the guided heads while there is one."""
        source, allowed = batch.source, batch.source_allowed
        weight = 0.0 if self.guide is None else self.guide.weight(self.global_step)
        if self.guide is None or weight == 0.0:
            return self.model.features(source, allowed, batch.target_input), None
        features, cross = self.model.attending_features(source, allowed, batch.target_input)
        target, real = batch.target_output, batch.target_allowed
        return features, weight * self.guide.loss(cross, source, target, allowed, real)

    def on_validation_epoch_start(self) -> None:
        self.tally = Tally()

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Gather one batch; the scores are formed over all of them."""
        self.validator.visit(self.model, batch, self.tally)

    def on_validation_epoch_end(self) -> None:
        tallies: list[Tally] = [self.tally]
        if self.trainer.world_size > 1:
            tallies = [Tally()] * self.trainer.world_size
            torch.distributed.all_gather_object(tallies, self.tally)
        self.validated = self.validator.result(tallies)

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


class _Spoken:
    """The part of the vocabulary that is said at all: training's softmax runs over nothing else."""

    def __init__(self, model: TranslationModel[Any]) -> None:
        said = model.output.silence == 0
        self.all = bool(said.all())
        self.pieces = said.nonzero().squeeze(1)
        self.places = said.cumsum(0) - 1

    def weight(self, model: TranslationModel[Any]) -> Tensor:
        """The projection's rows [S D] of the pieces that are said."""
        weight: Tensor = model.output.weight
        if self.all:
            return weight
        self.pieces = self.pieces.to(weight.device)
        return weight.index_select(0, self.pieces)

    def number(self, targets: Tensor) -> Tensor:
        """Where the target pieces stand among those rows."""
        if self.all:
            return targets
        self.places = self.places.to(targets.device)
        return self.places[targets]
