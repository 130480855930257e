"""A whole training run: loop, callbacks, and the choice of the weights to keep."""

import logging
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import lightning
import torch
import torch.utils.deterministic
from lightning.pytorch.callbacks import Callback, EarlyStopping
from lightning.pytorch.loggers import CSVLogger, Logger, TensorBoardLogger

from kakehashi.data.batching import Batch
from kakehashi.models.interface import TranslationModel
from kakehashi.training.averaging import WeightMean, Weights, mean_of_checkpoints, put_weights
from kakehashi.training.callbacks import NEVER, Point, Recorder, ValidationClock
from kakehashi.training.checkpoint import AtomicCheckpointIO, checkpoint_callbacks, load_weights
from kakehashi.training.config import (
    CallbacksConfig,
    LoggerConfig,
    ObjectiveConfig,
    OptimizerConfig,
    TrainerConfig,
)
from kakehashi.training.duration import PROBED, TimeBudget
from kakehashi.training.guidance import Guide
from kakehashi.training.module import TranslationTask
from kakehashi.training.plan import Plan, updates_per_epoch
from kakehashi.training.progress import ProgressLine
from kakehashi.training.schedule import Schedule, ScheduleConfig
from kakehashi.training.validation import Validated, Validator


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
    """Plain values kept in every checkpoint."""
    guide: Guide | None = None
    """Shows cross-attention where to look at first."""


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
    points: list[Point]
    chosen: str
    """Which weights: ``average`` or ``best``."""
    chosen_update: int
    validated: Validated
    """Of the chosen weights."""
    average: Validated | None
    is_main: bool
    """Whether this process is the one that writes the results."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values for the record."""
        plain = asdict(self)
        del plain["is_main"]
        return plain


def fit(
    model: TranslationModel[Any],
    data: lightning.LightningDataModule,
    validator: Validator,
    settings: FitSettings,
    folder: Path,
) -> Fitted:
    """Train, then leave the better of best checkpoint and average in the model.

    ``data`` gives batches of ``kakehashi.data``. Checkpoints and curves are written into
    ``folder``.

    Raises:
        TrainingError: when the loss stops being a number.
        KeyboardInterrupt: when the person at the keyboard has had enough.
    """
    run = _Run(model, data, validator, settings, folder)
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
        self.batches_per_epoch = len(data.train_dataloader())
        self.validation: list[Batch] = list(data.val_dataloader())
        self.plan = Plan.of(settings.trainer, self.batches_per_epoch)
        self.schedule = Schedule(settings.schedule, self.plan.total)
        self.task = TranslationTask(
            model,
            settings.objective,
            settings.optimizer,
            self.schedule,
            validator,
            settings.facts,
            fused=settings.trainer.precision != "16-mixed",
            guide=settings.guide,
        )
        self.recorder = Recorder(settings.trainer.log_every)
        self.average = WeightMean(settings.callbacks.averaging, self.plan)
        kind = settings.callbacks.averaging.kind
        keep = settings.callbacks.averaging.k if kind == "last_k" else 1
        self.best, self.newest = checkpoint_callbacks(folder / "checkpoints", keep)

    def train(self) -> None:
        """Run the loop to its end."""
        trainer = self._trainer()
        # with deterministic algorithms torch would also overwrite all new memory, for debugging
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        with quiet_lightning():
            try:
                trainer.fit(self.task, datamodule=_Loaders(self.data, self.validation))
            except SystemExit:
                # Lightning turns Ctrl-C into an exit of its own and leaves the signal switched off
                signal.signal(signal.SIGINT, signal.default_int_handler)
                if trainer.interrupted:
                    raise KeyboardInterrupt from None
                raise
        self.updates = trainer.global_step
        self.is_main = trainer.is_global_zero

    def _callbacks(self) -> list[Callback]:
        """In the order in which they have to hear of an update."""
        settings, callbacks = self.settings, list[Callback]()
        if settings.trainer.max_minutes is not None:
            callbacks.append(
                TimeBudget(
                    self.plan,
                    self.schedule,
                    settings.trainer,
                    settings.callbacks,
                    self.validator,
                    self.validation[::PROBED],
                )
            )
        callbacks += [ValidationClock(self.plan), self.recorder]
        if self.average.config.kind in ("mean", "ema"):
            callbacks.append(self.average)
        callbacks.append(ProgressLine(self.plan, settings.trainer.max_minutes))
        if settings.callbacks.patience is not None:
            callbacks.append(
                EarlyStopping(
                    "valid/bleu",
                    mode="max",
                    patience=settings.callbacks.patience,
                    check_on_train_epoch_end=False,
                )
            )
        return [*callbacks, self.best, self.newest]

    def _trainer(self) -> lightning.Trainer:
        config = self.settings.trainer
        with quiet_lightning():
            return lightning.Trainer(
                accelerator=config.accelerator,
                devices=config.devices,
                num_nodes=config.num_nodes,
                strategy=config.strategy,
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
                logger=self._loggers(),
                callbacks=self._callbacks(),
                plugins=[AtomicCheckpointIO()],
                default_root_dir=self.folder,
            )

    def _loggers(self) -> list[Logger]:
        loggers = list[Logger]()
        if self.settings.logger.csv:
            loggers.append(CSVLogger(self.folder, name="", version="curves"))
        if self.settings.logger.tensorboard:
            loggers.append(TensorBoardLogger(self.folder, name="", version="curves"))
        return loggers

    def choose(self) -> Fitted:
        """Put the weights with the higher validation BLEU into the model: best or averaged."""
        averaged = self._averaged()
        best = max(self.recorder.points, key=lambda point: point.bleu)
        chosen, update = "best", best.update
        validated = Validated(best.nll, best.bleu)
        average = None
        if averaged is not None:
            put_weights(self.model, averaged)
            average = self.validator.run(self.model, self.validation)
            if average.bleu >= best.bleu:
                chosen, update, validated = "average", self.updates, average
        if chosen == "best":
            put_weights(self.model, load_weights(Path(self.best.best_model_path)))
        total = self.plan.total
        return Fitted(
            updates=self.updates,
            total_updates=self.updates if total is None else total,
            epochs=self.updates
            / updates_per_epoch(self.batches_per_epoch, self.settings.trainer.accumulate),
            tokens=self.task.tokens,
            seconds=self.recorder.seconds,
            validation_seconds=self.recorder.validating,
            points=self.recorder.points,
            chosen=chosen,
            chosen_update=update,
            validated=validated,
            average=average,
            is_main=self.is_main,
        )

    def _averaged(self) -> Weights | None:
        kind = self.settings.callbacks.averaging.kind
        if kind == "last_k":
            return mean_of_checkpoints([Path(p) for p in sorted(self.newest.best_k_models)])
        return self.average.weights if kind != "none" and self.average.count else None


class _Loaders(lightning.LightningDataModule):
    """Training batches as the data give them; validation batches dealt out to the processes."""

    def __init__(self, data: lightning.LightningDataModule, validation: list[Batch]) -> None:
        super().__init__()
        self.data, self.validation = data, validation

    def train_dataloader(self) -> Any:
        self.data.trainer = self.trainer
        return self.data.train_dataloader()

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
        for text in (".*does not have many workers.*", ".*isinstance.treespec.*", ".*LeafSpec.*"):
            warnings.filterwarnings("ignore", text)
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
