"""How translations are searched for: the schema of `decoding=...` and of a saved model."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from kakehashi.errors import ConfigError


@dataclass
class DecodingConfig:
    """Settings of the search; every one of them can be given anew when a model is used."""

    beam: int = 5
    """Hypotheses kept for each sentence; 1 is greedy search."""
    length_penalty: float = 1.0
    """Score = log probability / length ** length_penalty; 0 prefers short translations."""
    max_ratio: float = 2.0
    """A translation has at most max_ratio * (source pieces) + max_extra pieces, EOS counted on
    both sides: a function of the sentence alone, never of the batch it stands in."""
    max_extra: int = 16
    batch_size: int = 64
    """Sentences decoded together at most (fewer where they are long)."""

    def __post_init__(self) -> None:
        if self.beam < 1:
            raise ConfigError(f"decoding.beam is {self.beam}; it must be at least 1")
        if not self.length_penalty >= 0:
            raise ConfigError(
                f"decoding.length_penalty is {self.length_penalty}; it must be 0 or more"
            )
        if not self.max_ratio >= 0 or self.max_extra < 1:
            raise ConfigError(
                f"decoding.max_ratio is {self.max_ratio} and decoding.max_extra {self.max_extra}; "
                "they must be at least 0 and 1, so that every translation may have a piece"
            )
        if self.batch_size < 1:
            raise ConfigError(f"decoding.batch_size is {self.batch_size}; it must be at least 1")


def decoding_config(settings: dict[str, Any]) -> DecodingConfig:
    """The dataclass for a saved ``decoding`` section.

    Raises:
        ConfigError: for a setting that is unknown, missing, or out of range.
    """
    known = {f.name for f in fields(DecodingConfig)}
    if unknown := sorted(set(settings) - known):
        raise ConfigError(f"unknown decoding setting: {', '.join(unknown)}")
    if missing := sorted(known - set(settings)):
        raise ConfigError(f"decoding settings lack {', '.join(missing)}")
    return DecodingConfig(**settings)


def decoding_settings(config: DecodingConfig) -> dict[str, Any]:
    """The plain dictionary that ``decoding_config`` reads back."""
    return asdict(config)
