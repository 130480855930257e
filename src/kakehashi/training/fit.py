"""A whole training run: loop, callbacks, and the choice of the weights to keep."""

import copy
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lightning
import torch
import torch.utils.deterministic
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.pytorch.callbacks import Callback

from kakehashi.data.batching import Batch
from kakehashi.data.notes import note
from kakehashi.errors import Stopped, TrainingError
from kakehashi.models.interface import TranslationModel
from kakehashi.training.alignment_head import AlignmentHead
from kakehashi.training.averaging import WeightMean, Weights, mean_of_checkpoints, put_weights
from kakehashi.training.callbacks import NEVER, Patience, Recorder, ValidationClock
from kakehashi.training.checkpoint import load_checkpoint, load_weights
from kakehashi.training.checkpoint_io import AtomicCheckpointIO
from kakehashi.training.config import (
    FSDP,
    CallbacksConfig,
    LoggerConfig,
    ObjectiveConfig,
    OptimizerConfig,
    TrainerConfig,
)
from kakehashi.training.curves import curve_loggers
from kakehashi.training.doubts import doubts
from kakehashi.training.duration import PROBED, TimeBudget
from kakehashi.training.endless import EndlessLoader
from kakehashi.training.faults import Faults, only_number
from kakehashi.training.fitted import Fitted
from kakehashi.training.guidance import Guide
from kakehashi.training.memory import out_of_memory
from kakehashi.training.module import TranslationTask
from kakehashi.training.plan import Plan
from kakehashi.training.progress import ProgressLine
from kakehashi.training.resume import check_fits, going_on_from
from kakehashi.training.saving import BEST, Checkpoints, is_whole, link, validated
from kakehashi.training.schedule import Schedule, ScheduleConfig
from kakehashi.training.seeds import SeededBatches
from kakehashi.training.sharding import ShardedStrategy, Whole, whole
from kakehashi.training.stopping import StopRequest, handlers_restored
from kakehashi.training.validation import Validated, Validator


def do_nothing() -> None:
    """What there is to do where nobody wants to know that a run begins."""


@dataclass(frozen=True)
class FitSettings:
    """Everything about a run but its data and its model."""

    trainer: TrainerConfig
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    callbacks: CallbacksConfig = field(default_factory=CallbacksConfig)
    logger: LoggerConfig = field(default_factory=LoggerConfig)
    facts: dict[str, Any] = field(default_factory=dict)
    """Plain values kept in every checkpoint; a run that goes on has to have the same."""
    guide: Guide | None = None
    """Shows cross-attention where to look at first."""
    aligning: AlignmentHead | None = None
    """Teaches a head of it to align, all through the run."""
    seed: int = 0
    """Of dropout."""
    resume: bool = False
    """Go on from the newest whole checkpoint in the run's folder, if there is one."""
    begin: Callable[[], None] = do_nothing
    """Called once it is known that the run can start, or go on from its checkpoint."""
    pair: Callable[[int], dict[str, Any]] = only_number
    """What a record of faults says of a training pair."""


def fit(
    model: TranslationModel[Any],
    data: lightning.LightningDataModule,
    validator: Validator,
    settings: FitSettings,
    folder: Path,
) -> Fitted:
    """Train, then leave the better of best checkpoint and average in the model.

    ``data`` gives batches of ``kakehashi.data``. Checkpoints and curves are written into
    ``folder``. A run that goes on makes the very updates that it would have made had it never
    stopped.

    Raises:
        TrainingError: when loss or gradient is not finite ``trainer.max_faults`` times in a row,
            memory does not suffice, or a checkpoint cannot be used.
        Stopped: when a signal asked for it; the state is saved.
    """
    run = _Run(model, data, validator, settings, folder)
    settings.begin()
    run.train()
    return run.choose()


class _Run:
    """The parts of one run, put together."""

    def __init__(
        self,
        model: TranslationModel[Any],
        data: lightning.LightningDataModule,
        validator: Validator,
        settings: FitSettings,
        folder: Path,
    ) -> None:
        self.settings, self.folder, self.data = settings, folder, data
        self.model, self.validator = model, validator
        trainer, averaging = settings.trainer, settings.callbacks.averaging
        self.batches_per_epoch = len(data.train_dataloader())
        self.validation: list[Batch] = list(data.val_dataloader())
        if not self.batches_per_epoch or not self.validation:
            what = "train" if self.validation else "valid"
            raise TrainingError(f"there is nothing to train on: {what} has no pairs")
        self.plan = Plan.of(trainer, self.batches_per_epoch)
        self.from_checkpoint: Path | None = None
        self.resumed: list[int] = []
        self.facts = dict(settings.facts)
        if settings.resume:
            self._go_on()
        self.schedule = Schedule(settings.schedule, self.plan.total)
        self.request = StopRequest()
        sharded = trainer.strategy == FSDP
        self.task = TranslationTask(
            copy.deepcopy(model) if sharded else model,
            settings.objective,
            settings.optimizer,
            self.schedule,
            validator,
            self.facts | {"resumed": self.resumed},
            fused=trainer.precision != "16-mixed",
            guide=settings.guide,
            aligning=settings.aligning,
            request=self.request,
            whole=Whole(model) if sharded else None,
        )
        self.recorder = Recorder(trainer.log_every)
        self.faults = Faults(
            trainer.max_faults, folder / "faults.jsonl", self.batches_per_epoch, settings.pair
        )
        self.average = WeightMean(averaging, self.plan)
        self.checkpoints = Checkpoints(
            folder / "checkpoints",
            self.plan,
            self.request,
            max(settings.callbacks.keep, averaging.k if averaging.kind == "last_k" else 1),
            settings.callbacks.save_minutes,
        )

    def _go_on(self) -> None:
        """Find the checkpoint to go on from, and take from it what has to be known ahead."""
        self.from_checkpoint = going_on_from(self.folder / "checkpoints")
        if self.from_checkpoint is None:
            note(f"{self.folder} holds no checkpoint yet: the run starts from its beginning")
            return
        checkpoint = load_checkpoint(self.from_checkpoint)
        check_fits(checkpoint, self.model, self.settings.facts, self.from_checkpoint)
        if self.plan.total is None:
            self.plan.total = checkpoint["kakehashi"]["total_updates"]
        if "run" in self.facts:  # which run it is stays, in whatever process it goes on
            self.facts["run"] = checkpoint["kakehashi"]["run"]
        self.resumed = [*checkpoint["kakehashi"]["resumed"], int(checkpoint["global_step"])]
        note(f"going on after update {self.resumed[-1]:,}, from {self.from_checkpoint}")

    def train(self) -> None:
        """Run the loop to its end."""
        trainer = self._trainer()
        # with deterministic algorithms torch would also overwrite all new memory, for debugging
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        loaders = _Loaders(self.data, self.validation)
        with quiet_lightning(), handlers_restored(trainer):
            try:
                trainer.fit(self.task, datamodule=loaders, ckpt_path=self.from_checkpoint)
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
                raise TrainingError(
                    "out of memory in validation or in the optimiser: lower "
                    "data.validation_batch_tokens, or take a smaller model"
                ) from error
        if self.request.number:  # between the last update and here
            raise Stopped(self.request.number)
        # Lightning takes the model off its device when it is done
        self.device = trainer.strategy.root_device
        self.updates = trainer.global_step
        self.is_main = trainer.is_global_zero

    def _callbacks(self) -> list[Callback]:
        """In the order in which they have to hear of an update."""
        settings = self.settings
        callbacks: list[Callback] = [SeededBatches(settings.seed), self.request]
        if settings.trainer.max_minutes is not None:
            callbacks.append(
                TimeBudget(
                    self.plan,
                    self.schedule,
                    settings.trainer,
                    settings.callbacks,
                    self.validator,
                    self.validation[::PROBED],
                    self.batches_per_epoch,
                )
            )
        callbacks += [self.faults, ValidationClock(self.plan), self.recorder]
        if self.average.config.kind in ("mean", "ema"):
            callbacks.append(self.average)
        callbacks.append(ProgressLine(self.plan, settings.trainer.max_minutes))
        if settings.callbacks.patience is not None:
            callbacks.append(Patience(settings.callbacks.patience))
        return [*callbacks, self.checkpoints]

    def _trainer(self) -> lightning.Trainer:
        config = self.settings.trainer
        strategy: str | ShardedStrategy = config.strategy
        if strategy == FSDP:
            strategy = ShardedStrategy(config.devices * config.num_nodes)
        plugins: list[Any] = [AtomicCheckpointIO()]
        if SLURMEnvironment.detect():
            # it would write checkpoints of its own, in the middle of an update
            plugins.append(SLURMEnvironment(auto_requeue=False))
        with quiet_lightning():
            return lightning.Trainer(
                accelerator=config.accelerator,
                devices=config.devices,
                num_nodes=config.num_nodes,
                strategy=strategy,
                precision=config.precision,  # type: ignore[arg-type]
                deterministic=config.deterministic,
                max_epochs=-1,
                max_steps=-1 if self.plan.total is None else self.plan.total,
                accumulate_grad_batches=config.accumulate,
                gradient_clip_val=config.clip,
                val_check_interval=NEVER,
                check_val_every_n_epoch=None,
                num_sanity_val_steps=0,
                log_every_n_steps=1,  # nothing is logged in training steps: see Recorder
                use_distributed_sampler=False,
                enable_progress_bar=False,
                enable_model_summary=False,
                logger=curve_loggers(
                    self.settings.logger, self.folder, self.resumed[-1] if self.resumed else None
                ),
                callbacks=self._callbacks(),
                plugins=plugins,
                default_root_dir=self.folder,
            )

    def choose(self) -> Fitted:
        """Put the weights with the higher validation BLEU into the model: best or averaged."""
        averaged = self._averaged()
        points = self.recorder.points
        best = next(point for point in points if point.update == self._best_update())
        chosen, update = "best", best.update
        scores = Validated(best.nll, best.bleu)
        average = None
        if averaged is not None:
            put_weights(self.model, averaged)
            average = self.validator.run(self.model.to(self.device), self.validation)
            if average.rank >= best.rank:
                chosen, update, scores = "average", self.updates, average
        if chosen == "best":
            put_weights(self.model, load_weights(self.checkpoints.folder / BEST))
        total, accumulate = self.plan.total, self.settings.trainer.accumulate
        return Fitted(
            updates=self.updates,
            total_updates=self.updates if total is None else total,
            epochs=self.updates * accumulate / self.batches_per_epoch,
            tokens=self.task.tokens,
            seconds=self.recorder.seconds,
            validation_seconds=self.recorder.validating,
            saving_seconds=self.checkpoints.spent,
            points=points,
            chosen=chosen,
            chosen_update=update,
            validated=scores,
            average=average,
            resumed=self.resumed,
            faults=self.faults.counts,
            warnings=doubts(points),
            is_main=self.is_main,
        )

    def _best_update(self) -> int:
        """Of best.ckpt; where it is lost for good, of the newest validation that is left."""
        folder = self.checkpoints.folder
        if self.checkpoints.best is not None:
            return self.checkpoints.best[0]
        for path in validated(folder):
            if is_whole(path):
                link(path, folder / BEST)
                return int(load_checkpoint(path)["global_step"])
        raise TrainingError(f"no checkpoint of a validation is left in {folder}")

    def _averaged(self) -> Weights | None:
        kind = self.settings.callbacks.averaging.kind
        if kind == "last_k":
            newest = validated(self.checkpoints.folder)[: self.settings.callbacks.averaging.k]
            return mean_of_checkpoints([path for path in newest if is_whole(path)])
        if kind == "none" or not self.average.count:
            return None
        return {name: whole(weight).cpu() for name, weight in self.average.weights.items()}


class _Loaders(lightning.LightningDataModule):
    """Training batches as the data give them; validation batches dealt out to the processes."""

    def __init__(self, data: lightning.LightningDataModule, validation: list[Batch]) -> None:
        super().__init__()
        self.data, self.validation = data, validation

    def train_dataloader(self) -> EndlessLoader:
        trainer = self.trainer
        assert trainer is not None
        self.data.trainer = trainer
        return EndlessLoader(self.data.train_dataloader(), trainer.world_size, trainer.global_rank)

    def val_dataloader(self) -> "_Batches":
        trainer = self.trainer
        assert trainer is not None
        if len(self.validation) < trainer.world_size:
            return _Batches(self.validation)  # the same sums in every process: the same scores
        return _Batches(self.validation[trainer.global_rank :: trainer.world_size])


class _Batches:
    """The validation batches, made once."""

    def __init__(self, batches: list[Batch]) -> None:
        self.batches = batches

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[Batch]:
        return iter(self.batches)


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Without Lightning's remarks about hardware, workers and itself; its warnings to us stay."""
    loggers = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        for text in (
            ".*does not have many workers.*",
            ".*isinstance.treespec.*",
            ".*LeafSpec.*",
            ".*logs directory.*exists and is not empty.*",  # a run that goes on: see curves.py
            ".*lr_scheduler.step.*before.*",  # float16's first updates are skipped
        ):
            warnings.filterwarnings("ignore", text)
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
