"""How a run is carried out: the schemas of training, but for the schedule's (schedule.py).

Nothing here imports torch, so that a typing error is told at once.
"""

from dataclasses import dataclass, field

from kakehashi.errors import ConfigError

EMBEDDINGS = ("aligned", "random")
OPTIMIZERS = ("muon", "adamw", "adam")
AVERAGES = ("none", "mean", "ema", "last_k")
PRECISIONS = ("32-true", "64-true", "bf16-mixed", "16-mixed", "bf16-true")

FSDP = "fsdp"
"""The strategy by which each process keeps a share of the weights (see sharding.py)."""
SHARED_PRECISIONS = ("32-true", "bf16-mixed")


@dataclass
class TrainerConfig:
    """Length, hardware and arithmetic of the run. Exactly one of the three lengths is given."""

    max_updates: int | None = None
    max_epochs: int | None = None
    max_minutes: float | None = None
    """Training and validation together; the first updates are timed, then the number of updates
    that fit is fixed and recorded, so that the run can be repeated exactly."""
    epochs_cap: int | None = None
    """With max_minutes: never more epochs than this, however fast the machine."""
    validate_every: float = 0.1
    """Below 1 a fraction of the run, from 1 on a number of updates."""
    accumulate: int = 2
    """Batches whose gradients make one update. Several small ones mix sentence lengths, which one
    large batch of like lengths does not."""
    clip: float | None = 1.0
    """Largest norm of the gradient."""
    precision: str = "32-true"
    """bf16-mixed and 16-mixed fall back to 32-true when they keep failing (see max_faults)."""
    max_faults: int = 10
    """Updates skipped in a row, because loss or gradient was not finite, after which mixed
    precision is given up and, in full precision, the run."""
    accelerator: str = "auto"
    devices: int = 1
    strategy: str = "auto"
    """auto, ddp or another name of Lightning's; fsdp: weights, gradients and the optimiser's
    memory spread over the processes, for models that don't fit one device."""
    num_nodes: int = 1
    deterministic: bool = True
    threads: int | None = None
    """Threads of one process on a CPU; null leaves it to torch."""
    log_every: int = 20
    """Updates between two points of the training curve."""

    def __post_init__(self) -> None:
        lengths = [self.max_updates, self.max_epochs, self.max_minutes]
        if sum(length is not None for length in lengths) != 1:
            raise ConfigError(
                "give exactly one of trainer.max_updates, trainer.max_epochs and "
                f"trainer.max_minutes (null turns one off); they are {lengths[0]}, {lengths[1]} "
                f"and {lengths[2]}"
            )
        for setting in ("max_updates", "max_epochs", "max_minutes", "epochs_cap", "clip"):
            value = getattr(self, setting)
            if value is not None and value <= 0:
                raise ConfigError(f"trainer.{setting} is {value}: it must be above 0")
        for setting in (
            "validate_every",
            "accumulate",
            "max_faults",
            "log_every",
            "devices",
            "num_nodes",
        ):
            if getattr(self, setting) <= 0:
                raise ConfigError(
                    f"trainer.{setting} is {getattr(self, setting)}: it must be above 0"
                )
        if self.strategy.startswith((FSDP, "deepspeed")):
            self._check_shares()
        if self.precision not in PRECISIONS:
            raise ConfigError(
                f"trainer.precision is {self.precision!r}; it can be {', '.join(PRECISIONS)}"
            )

    def _check_shares(self) -> None:
        """Of weights that are spread over the processes."""
        said = f"trainer.strategy is {self.strategy!r}"
        if self.strategy != FSDP:
            raise ConfigError(f"{said}: the one way to spread weights over processes is {FSDP}")
        if self.devices * self.num_nodes == 1:
            raise ConfigError(
                f"{said} and there is one process (trainer.devices=1): there is nothing to share, "
                "set trainer.devices, or trainer.strategy=auto"
            )
        if self.max_minutes is not None:
            raise ConfigError(
                f"{said}, with which an update is not timed ahead: give trainer.max_updates or "
                f"trainer.max_epochs in place of trainer.max_minutes={self.max_minutes}"
            )
        if self.precision not in SHARED_PRECISIONS:
            raise ConfigError(
                f"{said}, with which trainer.precision can be {' or '.join(SHARED_PRECISIONS)}; "
                f"it is {self.precision}"
            )


@dataclass
class StartConfig:
    """What a model knows of the training text before its first update."""

    embeddings: str = "aligned"
    """aligned: word vectors of pieces that translate each other start close together (IBM Model 1
    counts them, seconds for a small corpus); random: nothing is known."""
    guidance: float = 0.3
    """How strongly the first head of each cross-attention is pulled towards the alignment that
    the same counts give; 0: not at all."""
    guidance_updates: int = 500
    """Updates over which that pull falls to nothing."""
    spoken_only: bool = True
    """Whether pieces that no training target holds are left out of the softmax, and in translation
    made so unlikely that practically none is ever said."""

    def __post_init__(self) -> None:
        if self.embeddings not in EMBEDDINGS:
            raise ConfigError(
                f"start.embeddings is {self.embeddings!r}; it can be {', '.join(EMBEDDINGS)}"
            )
        if self.guidance < 0 or self.guidance_updates < 1:
            raise ConfigError(
                f"start.guidance is {self.guidance} and start.guidance_updates "
                f"{self.guidance_updates}: they must be at least 0 and 1"
            )


@dataclass
class ObjectiveConfig:
    """What training minimises."""

    label_smoothing: float = 0.1
    """How much of the probability is spread evenly over the vocabulary."""
    chunk: int = 512
    """Target tokens projected at once: a matter of speed and memory, not of the result."""
    alignments: str | None = None
    """A file of word alignments of the training text, a line of pairs `i-j` for each of its lines,
    as `kakehashi align` writes them; one head learns to align from it. null: none does."""
    alignment_weight: float = 0.3
    """How strongly; of the loss of a target piece, in nats."""

    def __post_init__(self) -> None:
        if self.alignment_weight <= 0:
            raise ConfigError(
                f"objective.alignment_weight is {self.alignment_weight}: it must be above 0 "
                "(objective.alignments=null leaves the alignments out)"
            )
        if not 0.0 <= self.label_smoothing < 1.0:
            raise ConfigError(
                f"objective.label_smoothing is {self.label_smoothing}: it must be in [0, 1)"
            )
        if self.chunk < 1:
            raise ConfigError(f"objective.chunk is {self.chunk}: it must be at least 1")


@dataclass
class OptimizerConfig:
    """Learning rates are peaks; the schedule multiplies both by the same factor."""

    name: str = "muon"
    """muon, adamw or adam."""
    learning_rate: float = 4e-3
    """Of Adam(W): all parameters, or with muon the embeddings, the output and the vectors."""
    muon_learning_rate: float = 0.02
    """Of Muon: the weight matrices of the layers."""
    beta1: float = 0.9
    beta2: float = 0.98
    epsilon: float = 1e-9
    weight_decay: float = 0.0
    """Decoupled decay of what AdamW updates, vectors excepted (adam: the L2 penalty)."""
    muon_weight_decay: float = 0.0
    """Decoupled decay of the matrices."""
    momentum: float = 0.95
    """Of Muon (Nesterov)."""
    newton_schulz_steps: int = 5

    def __post_init__(self) -> None:
        if self.name not in OPTIMIZERS:
            raise ConfigError(f"optimizer.name is {self.name!r}; it can be {', '.join(OPTIMIZERS)}")
        for setting in ("learning_rate", "muon_learning_rate", "epsilon"):
            if getattr(self, setting) <= 0:
                raise ConfigError(
                    f"optimizer.{setting} is {getattr(self, setting)}: it must be above 0"
                )
        for setting in ("beta1", "beta2", "momentum"):
            if not 0.0 <= getattr(self, setting) < 1.0:
                raise ConfigError(
                    f"optimizer.{setting} is {getattr(self, setting)}: it must be in [0, 1)"
                )


@dataclass
class AveragingConfig:
    """Which mean of the weights over time is tried as the result."""

    kind: str = "mean"
    """none; mean: of every update from ``start`` on; ema: exponential from ``start`` on; last_k:
    of the weights at the last k validations."""
    start: float = 0.9
    """Fraction of the run after which mean and ema begin."""
    decay: float = 0.999
    """ema: share of the old average kept at each update."""
    k: int = 5

    def __post_init__(self) -> None:
        if self.kind not in AVERAGES:
            raise ConfigError(
                f"callbacks.averaging.kind is {self.kind!r}; it can be {', '.join(AVERAGES)}"
            )
        if not 0.0 <= self.start < 1.0 or not 0.0 <= self.decay < 1.0 or self.k < 1:
            raise ConfigError(
                "callbacks.averaging: start and decay must be in [0, 1) and k at least 1; they "
                f"are {self.start}, {self.decay} and {self.k}"
            )


@dataclass
class CallbacksConfig:
    """What happens at validations."""

    averaging: AveragingConfig = field(default_factory=AveragingConfig)
    patience: int | None = None
    """Validations without a better BLEU (while it is 0: without a lower nll) after which the run
    stops; null: never."""
    validation_beam: int = 1
    """Beam of the translations that validation BLEU is computed on; 1 is greedy and fast."""
    save_minutes: float = 5.0
    """Minutes from one checkpoint to the next where no validation comes first: at most as much
    work is lost when the machine fails. 0: a checkpoint after every update."""

    keep: int = 1
    """Checkpoints kept beside the best: those of so many validations, the newest."""

    def __post_init__(self) -> None:
        if self.save_minutes < 0:
            raise ConfigError(
                f"callbacks.save_minutes is {self.save_minutes}: it must not be negative"
            )
        for setting in ("patience", "validation_beam", "keep"):
            value = getattr(self, setting)
            if value is not None and value < 1:
                raise ConfigError(f"callbacks.{setting} is {value}: it must be at least 1")


@dataclass
class LoggerConfig:
    """Where the curves go, inside the run's folder."""

    csv: bool = True
    tensorboard: bool = True
