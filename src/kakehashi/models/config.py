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


def _check_ranges(config: "TransformerConfig | RNNConfig") -> None:
    """Sizes are 1 or more, probabilities lie in [0, 1)."""
    for f in fields(config):
        setting, value = f"model.{f.name}", getattr(config, f.name)
        if f.type is int and value < 1:
            raise ConfigError(f"{setting} is {value}; it must be at least 1")
        if f.type is float and not 0 <= value < 1:
            raise ConfigError(f"{setting} is {value}; a probability is at least 0 and below 1")


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
    norm: str = "layer"
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
        _check_ranges(self)
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
        _check_ranges(self)
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
        ConfigError: for a model name, a setting or a value that is not known or of another type,
            and for a setting that is missing; nothing is guessed.
    """
    name = settings.get("name")
    if not isinstance(name, str) or name not in CONFIGS:
        raise ConfigError(f"unknown model {name!r}; there are {', '.join(CONFIGS)}")
    kind = CONFIGS[name]
    kinds: dict[str, Any] = {f.name: f.type for f in fields(kind)}
    if unknown := sorted(set(settings) - set(kinds)):
        raise ConfigError(f"unknown setting of model {name}: {', '.join(unknown)}")
    if missing := sorted(set(kinds) - set(settings)):
        raise ConfigError(f"model {name} lacks {', '.join(missing)}")
    return kind(**{s: _of_type(f"model.{s}", value, kinds[s]) for s, value in settings.items()})


def _of_type(setting: str, value: Any, kind: type) -> Any:
    """The value in its declared type: JSON has no dataclasses, and 0 may stand for 0.0."""
    if kind is ScoreConfig and isinstance(value, dict) and set(value) == {"name"}:
        return ScoreConfig(_of_type(f"{setting}.name", value["name"], str))
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        wanted = "{'name': ...}" if kind is ScoreConfig else kind.__name__
        raise ConfigError(f"{setting} is {value!r}; it must be of the form {wanted}")
    return value


def model_settings(config: ModelConfig) -> dict[str, Any]:
    """The plain dictionary that ``model_config`` reads back."""
    return asdict(config)


def attentions(config: ModelConfig) -> tuple[int, int]:
    """How many layers attend to the source, and with how many heads each."""
    if isinstance(config, RNNConfig):
        return 1, 1
    return config.decoder_layers, config.n_heads
