"""What a call may ask of a translator."""

import re
from dataclasses import dataclass, field, fields, replace

from kakehashi.decoding.config import DecodingConfig
from kakehashi.decoding.methods import BEAM, DiverseBeam, Method, Sampling, check_number
from kakehashi.errors import ConfigError
from kakehashi.inference.placeholders import PLACEHOLDER
from kakehashi.inference.terms import Terms


@dataclass(frozen=True)
class MinimumRisk:
    """Minimum Bayes risk: of many samples the one that is most like the others, by chrF."""

    samples: int = 32
    """How many are drawn; the work grows with them, that of comparing with their square."""
    sampling: Sampling = field(default_factory=Sampling)

    def __post_init__(self) -> None:
        if self.samples < 2:
            raise ConfigError(f"{self.samples} samples to compare; there must be at least 2")


@dataclass(frozen=True)
class Options:
    """How lines are to be translated; what is None is as the model says.

    The settings of ``DecodingConfig`` stand here under the same names, with the same meaning.
    """

    beam: int | None = None
    """None: as the model says, made up to a multiple of the groups of a diverse beam."""
    patience: float | None = None
    length_penalty: float | None = None
    coverage_penalty: float | None = None
    min_ratio: float | None = None
    max_ratio: float | None = None
    no_repeat_ngram: int | None = None
    repetition_penalty: float | None = None
    batch_size: int | None = None
    method: Method | MinimumRisk = BEAM
    n_best: int = 1
    """Translations of each line: at most ``beam``, or ``samples`` of ``MinimumRisk``; with
    ``Sampling`` so many are drawn."""
    details: bool = False
    """Whether to tell of each translation its pieces, their probabilities and what they are
    aligned to. Takes a second look at each of them, about a tenth of the time."""

    split: bool = False
    """Whether every line is translated sentence by sentence, not only those that are too long; the
    white space between the sentences stays. With ``markup`` a line break or a paragraph ends a
    sentence too."""
    markup: bool = False
    """Whether tags such as ``<b>`` are markup: taken out of the text, and put back into its
    translation. Lines with tags take a second look at their translations, as for ``details``."""
    placeholders: bool = False
    """Whether placeholders (symbols of the tokenizer, and what ``inference.placeholders`` knows)
    have to come out as they went in, with a warning where they do not."""
    keep: str | None = None
    """A regular expression: what it finds in a line has to come out likewise."""
    copy_unknown: bool = False
    """Whether the model may say that it has no piece for something, to have it copied from the
    line; for a tokenizer without byte fallback, which alone has an unknown piece."""
    terms: Terms | None = None
    """Words of the line that have a translation of their own."""

    def __post_init__(self) -> None:
        if self.keep is not None:
            try:
                re.compile(self.keep)
            except re.error as error:
                raise ConfigError(f"keep is no regular expression: {self.keep}: {error}") from error

    @property
    def kept(self) -> tuple[re.Pattern[str], ...]:
        """What has to come out as it went in."""
        given = () if self.keep is None else (re.compile(self.keep),)
        return (PLACEHOLDER, *given) if self.placeholders else given

    def search(self, default: DecodingConfig) -> DecodingConfig:
        """The settings of the search, for a model whose own are ``default``.

        Raises:
            ConfigError: for a setting out of range.
        """
        names = {f.name for f in fields(DecodingConfig)} & {f.name for f in fields(self)}
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        if isinstance(self.method, DiverseBeam) and self.beam is None:
            groups = self.method.groups
            given["beam"] = -(-default.beam // groups) * groups
        try:
            config = replace(default, **given)
        except ConfigError as error:  # of a model's settings; here they are options
            raise ConfigError(str(error).replace("decoding.", "")) from error
        method = self.method.sampling if isinstance(self.method, MinimumRisk) else self.method
        check_number(config.beam, method, self.n_best)
        if isinstance(self.method, MinimumRisk) and self.n_best > self.method.samples:
            raise ConfigError(
                f"an n-best list of {self.n_best} needs as many samples; they are "
                f"{self.method.samples}"
            )
        return config
