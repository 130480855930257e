"""The ways to get translations out of a model."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from kakehashi.errors import ConfigError


@dataclass(frozen=True)
class Beam:
    """Beam search with the configuration's beam; a beam of 1 is greedy search."""

    scored: bool = True
    """Whether scores and log probabilities are wanted. Greedy search without rules goes by logits
    and needs none: without them it is faster, and they are NaN. Other searches need them anyway."""


@dataclass(frozen=True)
class DiverseBeam:
    """Beam search in groups that are kept from saying the same (Vijayakumar et al., 2018)."""

    groups: int
    """The beam is shared out evenly among them."""
    strength: float = 0.5
    """What a piece loses in log probability for each hypothesis of the groups before that says it
    at the same step."""

    def __post_init__(self) -> None:
        if self.groups < 1:
            raise ConfigError(f"{self.groups} groups of a diverse beam; there must be at least 1")
        if not 0 <= self.strength < float("inf"):
            raise ConfigError(f"the strength of diversity is {self.strength}; it must be 0 or more")


@dataclass(frozen=True)
class Sampling:
    """How pieces are drawn: temperature first, then ``top_k``, then ``top_p``."""

    temperature: float = 1.0
    """Logits are divided by it: below 1 the draws keep to what is probable, above 1 they stray."""
    top_k: int = 0
    """Only the k most probable pieces can be drawn (Fan et al., 2018); 0 is off."""
    top_p: float = 1.0
    """Only the fewest pieces that together have this probability can be drawn (Holtzman et al.,
    2020); 1 is off."""
    seed: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.temperature < float("inf"):
            raise ConfigError(f"the temperature is {self.temperature}; it must be greater than 0")
        if self.top_k < 0:
            raise ConfigError(f"top_k is {self.top_k}; it must be 0 (off) or more")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p is {self.top_p}; it must be greater than 0 and at most 1")


Method = Beam | DiverseBeam | Sampling
BEAM = Beam()


def check_number(beam: int, method: Method, n_best: int) -> None:
    """Raise ConfigError for an n-best list, or groups, for which a beam has no room."""
    if n_best < 1:
        raise ConfigError(f"an n-best list of {n_best}; it must have at least 1")
    if n_best > beam and not isinstance(method, Sampling):
        raise ConfigError(
            f"an n-best list of {n_best} needs a beam of at least that (--beam); it is {beam}"
        )
    if isinstance(method, DiverseBeam) and beam % method.groups:
        raise ConfigError(
            f"a beam of {beam} cannot be shared out evenly to {method.groups} groups (--diverse): "
            f"give a multiple of {method.groups} (--beam)"
        )


def sentence_key(ids: Sequence[int]) -> int:
    """A number that stands for a source sentence: its pieces decide it, and nothing else."""
    digest = hashlib.blake2b(" ".join(map(str, ids)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
