"""What a call may ask of a translator."""

from dataclasses import dataclass, fields, replace

from kakehashi.decoding.config import DecodingConfig
from kakehashi.errors import ConfigError


@dataclass(frozen=True)
class Options:
    """How lines are to be translated; what is None is as the model says.

    The settings of ``DecodingConfig`` stand here under the same names, with the same meaning.
    """

    beam: int | None = None
    length_penalty: float | None = None
    batch_size: int | None = None
    n_best: int = 1
    """Translations of each line, at most ``beam``."""
    details: bool = False
    """Whether to tell of each translation its pieces, their probabilities and what they are
    aligned to. Takes a second look at each of them, about a tenth of the time."""

    def search(self, default: DecodingConfig) -> DecodingConfig:
        """The settings of the search, for a model whose own are ``default``.

        Raises:
            ConfigError: for a setting out of range.
        """
        names = {f.name for f in fields(DecodingConfig)} & {f.name for f in fields(self)}
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        config = replace(default, **given)
        if not 1 <= self.n_best <= config.beam:
            raise ConfigError(
                f"an n-best list of {self.n_best} needs a beam of at least that; the beam is "
                f"{config.beam}"
            )
        return config
