"""How translations are searched for: the schema of `decoding=...` and of a saved model."""

from dataclasses import asdict, dataclass, fields
from math import floor
from typing import Any

from kakehashi.errors import ConfigError


@dataclass
class DecodingConfig:
    """Settings of the search; every one of them can be given anew when a model is used."""

    beam: int = 5
    """Hypotheses kept for each sentence; 1 is greedy search."""
    patience: float = 1.0
    """A search is through when round(beam * patience) hypotheses have ended, or sooner if nothing
    better can come; greater values search longer (Kasai et al., 2022). At least 1."""
    length_penalty: float = 1.0
    """Score = log probability / length ** length_penalty; 0 prefers short translations."""
    coverage_penalty: float = 0.0
    """Weight of the coverage penalty in the score: greater values prefer translations that attend
    to every source piece (Wu et al., 2016, equation 14); 0 is off."""
    min_ratio: float = 0.0
    """A translation has at least min_ratio * (source pieces) pieces, rounded down and EOS counted
    on both sides; 0 is off."""
    max_ratio: float = 2.0
    """A translation has at most max_ratio * (source pieces) + max_extra pieces, EOS counted on
    both sides: a function of the sentence alone, never of the batch it stands in."""
    max_extra: int = 16
    no_repeat_ngram: int = 0
    """No n pieces in a row are said twice in a translation; 0 is off."""
    repetition_penalty: float = 1.0
    """Logits of pieces that were said are divided by it, or multiplied where negative: greater
    values repeat less (Keskar et al., 2019, section 4.1); 1 is off."""
    batch_size: int = 64
    """Sentences decoded together at most (fewer where they are long)."""

    def __post_init__(self) -> None:
        for setting, least in (("beam", 1), ("batch_size", 1), ("no_repeat_ngram", 0)):
            if getattr(self, setting) < least:
                raise ConfigError(
                    f"decoding.{setting} is {getattr(self, setting)}; it must be at least {least}"
                )
        for setting, lowest in (
            ("patience", 1),
            ("length_penalty", 0),
            ("coverage_penalty", 0),
            ("repetition_penalty", 1),
        ):
            if not lowest <= getattr(self, setting) < float("inf"):
                raise ConfigError(
                    f"decoding.{setting} is {getattr(self, setting)}; it must be {lowest} or more"
                )
        if not self.max_ratio >= 0 or self.max_extra < 1:
            raise ConfigError(
                f"decoding.max_ratio is {self.max_ratio} and decoding.max_extra {self.max_extra}; "
                "they must be at least 0 and 1, so that every translation may have a piece"
            )
        if not 0 <= self.min_ratio <= self.max_ratio:
            raise ConfigError(
                f"decoding.min_ratio is {self.min_ratio}; it must be from 0 to decoding.max_ratio, "
                f"{self.max_ratio}"
            )


def enough(beam: int, patience: float) -> int:
    """Finished hypotheses with which a beam is through: beam * patience, halves rounded up.

    A beam of 1 follows one hypothesis, which can end once.
    """
    return 1 if beam == 1 else floor(beam * patience + 0.5)


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
