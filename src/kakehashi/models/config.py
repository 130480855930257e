"""How a model is described: plain dataclasses, the schema of `model=...` and of a saved config."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from kakehashi.errors import ConfigError

SCORES = ("dot", "scaled_dot", "general", "additive")
ACTIVATIONS = ("relu", "gelu", "swiglu")
NORMS = ("layer", "rms")
NORM_POSITIONS = ("pre", "post")


def _one_of(setting: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigError(f"{setting} is {value!r}; it can be {', '.join(choices)}")


@dataclass
class ScoreConfig:
    """Which f of ``V Softmax(f(Q, K))`` an attention uses."""

    name: str = "scaled_dot"

    def __post_init__(self) -> None:
        _one_of("score.name", self.name, SCORES)


@dataclass
class TransformerConfig:
    """A Transformer (Vaswani et al., 2017); the defaults are the tuned small-corpus model."""

    name: str = "transformer"
    encoder_layers: int = 3
    decoder_layers: int = 2
    d_model: int = 128
    d_feedforward: int = 512
    n_heads: int = 4
    activation: str = "relu"
    norm: str = "rms"
    norm_position: str = "pre"
    bias: bool = False
    """Whether linears (and layer norms) carry a bias."""
    tie_embeddings: bool = True
    """One matrix for source and target embeddings and the output projection."""
    dropout: float = 0.1
    """On the embeddings and on what each sublayer adds to the residual stream."""
    attention_dropout: float = 0.0
    """On the attention weights."""
    activation_dropout: float = 0.0
    """Inside the feed-forward sublayer, after the activation."""
    score: ScoreConfig = field(default_factory=ScoreConfig)

    def __post_init__(self) -> None:
        _one_of("model.name", self.name, ("transformer",))
        _one_of("model.activation", self.activation, ACTIVATIONS)
        _one_of("model.norm", self.norm, NORMS)
        _one_of("model.norm_position", self.norm_position, NORM_POSITIONS)
        if self.d_model % (2 * self.n_heads):
            raise ConfigError(
                f"model.d_model is {self.d_model}: it must be a multiple of twice model.n_heads "
                f"({self.n_heads}), so that heads and sinusoids divide it evenly"
            )


@dataclass
class RNNConfig:
    """RNNsearch (Bahdanau et al., 2015): dimensions as in the paper's appendix A.2."""

    name: str = "rnn"
    d_embedding: int = 128
    """m, the width of a word vector."""
    d_hidden: int = 256
    """n, hidden units of each encoder direction and of the decoder."""
    d_attention: int = 128
    """n', the width in which the alignment model compares query and key."""
    d_maxout: int = 128
    """l, maxout units of the readout (each the larger of two)."""
    tie_embeddings: bool = True
    """One matrix for source and target embeddings and the output (needs d_maxout = d_embedding)."""
    dropout: float = 0.2
    """On embeddings, annotations and the readout."""
    score: ScoreConfig = field(default_factory=lambda: ScoreConfig("additive"))

    def __post_init__(self) -> None:
        _one_of("model.name", self.name, ("rnn",))
        if self.tie_embeddings and self.d_maxout != self.d_embedding:
            raise ConfigError(
                f"model.tie_embeddings needs model.d_maxout ({self.d_maxout}) equal to "
                f"model.d_embedding ({self.d_embedding})"
            )


ModelConfig = TransformerConfig | RNNConfig
CONFIGS: dict[str, type[TransformerConfig] | type[RNNConfig]] = {
    "transformer": TransformerConfig,
    "rnn": RNNConfig,
}


def model_config(settings: dict[str, Any]) -> ModelConfig:
    """The dataclass for a saved ``model`` section.

    Raises:
        ConfigError: for a model name, a setting or a value that is not known; nothing is guessed.
    """
    name = settings["name"] if "name" in settings else None
    if not isinstance(name, str) or name not in CONFIGS:
        raise ConfigError(f"unknown model {name!r}; there are {', '.join(CONFIGS)}")
    kind = CONFIGS[name]
    known = {f.name for f in fields(kind)}
    if unknown := sorted(set(settings) - known):
        raise ConfigError(f"unknown setting of model {name}: {', '.join(unknown)}")
    if missing := sorted(known - set(settings)):
        raise ConfigError(f"model {name} lacks {', '.join(missing)}")
    values = dict(settings)
    if not isinstance(values["score"], ScoreConfig):
        values["score"] = ScoreConfig(**values["score"])
    return kind(**values)


def model_settings(config: ModelConfig) -> dict[str, Any]:
    """The plain dictionary that ``model_config`` reads back."""
    return asdict(config)
