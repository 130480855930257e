"""The schema of `kakehashi train`: what can be set, of which type, and where the files stand."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

import kakehashi
from kakehashi.data.config import DataConfig
from kakehashi.data.tokenizer_config import TokenizerConfig
from kakehashi.decoding.config import DecodingConfig
from kakehashi.errors import ConfigError
from kakehashi.models.config import RNNConfig, TransformerConfig, model_config
from kakehashi.training.config import (
    FSDP,
    CallbacksConfig,
    LoggerConfig,
    ObjectiveConfig,
    OptimizerConfig,
    StartConfig,
    TrainerConfig,
)
from kakehashi.training.schedule import ScheduleConfig


@dataclass
class TrainConfig:
    """Everything that makes a run what it is."""

    name: str = MISSING
    """The folder of its runs."""
    runs: str = "runs"
    """The folder of all runs, from where the command is typed."""
    seed: int = 1
    resume: str | None = None
    """The folder of a run to go on with, all its settings included; auto: whatever run there is in
    hydra.run.dir, or a new one."""
    resume_changed: bool = False
    """Go on although settings are others than the run began with."""
    data: DataConfig = field(default_factory=DataConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    model: Any = MISSING
    """A TransformerConfig or an RNNConfig."""
    start: StartConfig = field(default_factory=StartConfig)
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    trainer: TrainerConfig = field(default_factory=lambda: TrainerConfig(max_minutes=10))
    callbacks: CallbacksConfig = field(default_factory=CallbacksConfig)
    logger: LoggerConfig = field(default_factory=LoggerConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)

    def __post_init__(self) -> None:
        for setting in ("max_epochs", "epochs_cap"):
            if self.data.streaming and getattr(self.trainer, setting) is not None:
                raise ConfigError(
                    f"trainer.{setting} is {getattr(self.trainer, setting)}, and with "
                    "data.streaming nobody knows how long an epoch is: give trainer.max_updates "
                    "or trainer.max_minutes"
                )
        changed = self.tokenizer.sampling.kind is not None or self.data.filters.clean
        if self.objective.alignments is not None and changed:
            raise ConfigError(
                "objective.alignments are of words as they stand in the files, cut into the same "
                "pieces in every epoch: leave out tokenizer.sampling and data.filters.clean"
            )


def register_schemas() -> None:
    """Make the schemas known to Hydra, under the names that the files refer to."""
    store = ConfigStore.instance()
    store.store(name="train_schema", node=_schema())
    store.store(group="schema", name="transformer", node=TransformerConfig)
    store.store(group="schema", name="rnn", node=RNNConfig)


def _schema() -> DictConfig:
    schema: DictConfig = OmegaConf.structured(TrainConfig)
    schema.trainer.max_minutes = None  # the choice of a length is the files', not the schema's
    return schema


def config_dir() -> Path:
    """Where the configuration files are: in the installed package, or at the repository's top.

    Raises:
        ConfigError: when they are in neither place.
    """
    package = Path(kakehashi.__file__).resolve().parent
    candidates = [package / "configs", package.parents[1] / "configs"]
    for folder in candidates:
        if (folder / "train.yaml").is_file():
            return folder
    raise ConfigError(
        f"the configuration files are missing: train.yaml is neither in {candidates[0]} nor in "
        f"{candidates[1]}; install Kakehashi again"
    )


def read_config(config: DictConfig) -> TrainConfig:
    """Plain dataclasses from what Hydra composed, all values checked.

    Works on a configuration without schemas too, as a process started by another one gets.

    Raises:
        ConfigError: for a setting that is unknown, missing, of the wrong type or out of range.
    """
    try:
        plain: dict[str, Any] = OmegaConf.to_container(  # type: ignore[assignment]
            config, resolve=True, throw_on_missing=True
        )
        read = OmegaConf.to_object(OmegaConf.merge(_schema(), plain))
    except OmegaConfBaseException as error:
        raise ConfigError(str(error)) from error
    assert isinstance(read, TrainConfig)
    read.model = model_config(plain["model"])
    if read.trainer.strategy == FSDP and isinstance(read.model, RNNConfig):
        raise ConfigError(
            "trainer.strategy=fsdp spreads the layers of a Transformer over processes, and "
            "model=rnn has none: use trainer.strategy=ddp"
        )
    return read
