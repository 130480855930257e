"""The settings of corpora: the schema of `data=...`."""

import math
from dataclasses import dataclass, field, fields
from typing import Any

from kakehashi.data.cleaning import STEPS
from kakehashi.errors import ConfigError

CORPUS_KINDS = ("tatoeba", "files", "mixture", "hub")
CLEANING_STEPS = tuple(STEPS)
DUPLICATES = ("none", "pair", "source", "target")
FILTERED_SPLITS = ("train", "valid")
AUTO = "auto"
"""As data.batch_tokens: whatever fills the memory."""


@dataclass
class SplitConfig:
    """Where one of train, valid, test comes from; all empty: held out of train (or absent)."""

    source: str | None = None
    """A plain text file of source sentences, one a line; goes with `target`. Here and below, a
    name with wildcards (part-*.de) stands for all files that match, in the order of their names."""
    target: str | None = None
    """The plain text file of their translations, line by line."""
    path: str | None = None
    """One file with both sides: .tsv, .csv, .jsonl or .parquet. Compressed files end in .gz .xz
    .bz2 .zst, here and above."""
    split: str | None = None
    """The name of the split on the hub (`kind: hub`)."""

    def __post_init__(self) -> None:
        if (self.source is None) != (self.target is None):
            raise ConfigError("a split of plain files needs both `source` and `target`")
        if self.given and sum(p is not None for p in (self.source, self.path, self.split)) > 1:
            raise ConfigError("a split is either `source` and `target`, or `path`, or `split`")

    @property
    def given(self) -> bool:
        """Whether anything is set."""
        return any(part is not None for part in (self.source, self.path, self.split))


@dataclass
class FilterConfig:
    """Which pairs are left out, and what is changed in their text; nothing, unless asked for.

    In this order; a pair is left out for the first reason that holds.
    """

    splits: list[str] = field(default_factory=lambda: ["train"])
    """Where the filters work: train, or train and valid. A test set is never touched."""
    clean: list[str] = field(default_factory=list)
    """Steps that change text, in their order: entities (&amp; and the like become characters),
    controls (taken out, with soft hyphens and invisible marks), spaces (any run of white space
    becomes one space, none at the ends), strip (white space at the ends), nfc."""
    max_words: int | None = None
    """Most words of a side, between white space."""
    max_characters: int | None = None
    max_ratio: float | None = None
    """Characters of the longer side by those of the shorter one."""
    same: bool = False
    """Leave out pairs whose sides are equal: text that was never translated."""
    min_script: float | None = None
    """The share of a side's letters that are of its language's scripts, from 0 to 1."""
    source_scripts: list[str] | None = None
    """ISO 15924 codes, such as [Hira, Kana, Hani]; None: those that the language is written in."""
    target_scripts: list[str] | None = None
    language: bool = False
    """Leave out pairs of which a side is surely in another language, as py3langid identifies it
    (the extra `check`). Short sentences are not judged."""
    duplicates: str = "none"
    """Of pairs with the same text (on both sides, or on the source or target side) all but the
    first are left out."""

    def __post_init__(self) -> None:
        if "test" in self.splits:
            raise ConfigError(
                "data.filters.splits names test; a test set is scored as it is, or scores mean "
                "nothing: it is never filtered or cleaned"
            )
        for name, known in (("splits", FILTERED_SPLITS), ("clean", CLEANING_STEPS)):
            if unknown := [value for value in getattr(self, name) if value not in known]:
                raise ConfigError(
                    f"data.filters.{name} names {unknown[0]!r}; it can be {', '.join(known)}"
                )
        if self.duplicates not in DUPLICATES:
            raise ConfigError(
                f"data.filters.duplicates is {self.duplicates!r}; it can be {', '.join(DUPLICATES)}"
            )
        for name, low, high in (
            ("max_words", 1, None),
            ("max_characters", 1, None),
            ("max_ratio", 1, None),
            ("min_script", 0, 1),
        ):
            value = getattr(self, name)
            if value is not None and not low <= value <= (value if high is None else high):
                bounds = f"at least {low}" if high is None else f"from {low} to {high}"
                raise ConfigError(f"data.filters.{name} is {value}; it must be {bounds}")


@dataclass
class PartConfig(SplitConfig):
    """One of several corpora that are trained on together (`kind: mixture`)."""

    weight: float = 1.0
    """How many times an epoch goes through it: 2 twice, 0.25 through another quarter of it in each
    of four epochs."""
    source_column: str | None = None
    """As in DataConfig, for this corpus alone."""
    target_column: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.weight < math.inf:
            raise ConfigError(
                f"the weight of a corpus is {self.weight}; it must be above 0 (a corpus that is "
                "not wanted is left out of data.corpora)"
            )


def _part(name: str, given: Any) -> PartConfig:
    if isinstance(given, PartConfig):
        return given
    known = [part.name for part in fields(PartConfig) if part.name != "split"]
    unknown = [key for key in given if key not in known] if isinstance(given, dict) else [given]
    if unknown:
        raise ConfigError(
            f"data.corpora.{name} has no setting {unknown[0]!r}; there are {', '.join(known)}"
        )
    try:
        weight = float(given.get("weight", 1.0))
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"data.corpora.{name}.weight={given['weight']!r}: not a number"
        ) from error
    paths = {key: str(value) for key, value in given.items() if value is not None}
    return PartConfig(**(paths | {"weight": weight}))  # type: ignore[arg-type]


@dataclass
class DataConfig:
    """A parallel corpus, its splits, and how it is cut into batches."""

    name: str = "tatoeba-de-en"
    """Names the corpus in run folders and model cards."""
    kind: str = "tatoeba"
    source_language: str = "de"
    target_language: str = "en"
    root: str = "data"
    """The folder of downloads and of the cache of tokenised text."""
    train: SplitConfig = field(default_factory=SplitConfig)
    # Any is a PartConfig or its fields: what is added on a command line has no type yet.
    corpora: dict[str, Any] = field(default_factory=dict)
    """The training pairs of `kind: mixture`, each a PartConfig under a name of your own."""
    temperature: float | None = None
    """Instead of weights: an epoch, as large as all corpora together, takes from each in
    proportion to its size to the power of 1/temperature; 1 is as they are, 5 nearly level."""
    valid: SplitConfig = field(default_factory=SplitConfig)
    test: SplitConfig = field(default_factory=SplitConfig)
    source_column: str | None = None
    """A column's number from 1 (TSV without a header), a TSV header's name, or a field of JSON
    lines and parquet (dotted when nested: translation.de). None: columns 1 and 2 of a TSV file,
    the fields named like the languages elsewhere."""
    target_column: str | None = None
    hub_path: str | None = None
    """The data set's name on the hub, or a local folder of the same form."""
    hub_name: str | None = None
    """The data set's configuration (subset)."""
    hub_revision: str | None = None
    """A commit, so that the text stays the same."""
    valid_size: int = 1000
    """Pairs held out of train where `valid` isn't given."""
    test_size: int = 1000
    split_seed: int = 0
    drop_overlap: bool = False
    """Leave pairs out of train whose source or target occurs in the given valid or test."""
    filters: FilterConfig = field(default_factory=FilterConfig)
    max_length: int = 128
    """Training pairs with more pieces than this on either side are left out, and counted."""
    batch_tokens: int | str = 1024
    """Upper bound of rows * (longest source + longest target) in a training batch. A batch holds
    sentences of like length; ``trainer.accumulate`` of them make an update. auto: what fills the
    memory, measured once and written down."""
    validation_batch_tokens: int = 8192
    workers: int = 0
    """Processes that assemble batches; 0 is fast enough for all but the largest models. Of a stream
    one process reads and tokenises ahead, whatever the number above 0."""
    streaming: bool = False
    """Read the training pairs of a data set on the hub as they are needed, without keeping them."""
    buffer: int = 50_000
    """Pairs of a stream that are shuffled together, and sorted by length to make batches; so many
    are also what tokenizer, lexicon and held-out splits are made from."""

    def __post_init__(self) -> None:
        if self.kind not in CORPUS_KINDS:
            raise ConfigError(f"data.kind is {self.kind!r}; it can be {', '.join(CORPUS_KINDS)}")
        for name in ("valid_size", "test_size", "workers"):
            if getattr(self, name) < 0:
                raise ConfigError(f"data.{name} is {getattr(self, name)}; it must not be negative")
        self._check_sizes()
        self.corpora = {str(name): _part(name, given) for name, given in self.corpora.items()}
        if self.kind != "mixture" and (self.corpora or self.temperature is not None):
            raise ConfigError("data.corpora and data.temperature go with data.kind=mixture")
        if self.temperature is not None:
            if not 1 <= self.temperature < math.inf:
                raise ConfigError(f"data.temperature is {self.temperature}; it is at least 1")
            if any(part.weight != 1 for part in self.corpora.values()):
                raise ConfigError("give the corpora weights or data.temperature, not both")
        self._check_streaming()
        if not (self.source_language and self.target_language):
            raise ConfigError(
                "say which languages these are: data.source_language=de data.target_language=en"
            )
        if self.source_language == self.target_language:
            raise ConfigError(
                f"data.source_language and data.target_language are both {self.source_language!r}"
            )

    def _check_sizes(self) -> None:
        for name in ("max_length", "batch_tokens", "validation_batch_tokens", "buffer"):
            value = getattr(self, name)
            if name == "batch_tokens" and isinstance(value, str):
                if value != AUTO:
                    raise ConfigError(f"data.{name} is {value!r}; it can be a number or {AUTO}")
            elif value < 1:
                raise ConfigError(f"data.{name} is {value}; it must be at least 1")

    def _check_streaming(self) -> None:
        if self.streaming and self.kind != "hub":
            raise ConfigError(
                f"data.streaming reads a data set on the hub, or a folder of the same form "
                f"(data.kind=hub data.hub_path=...); data.kind is {self.kind}, whose files are "
                "read from the disk and never held in memory anyway"
            )
        if self.streaming and self.filters.duplicates != "none":
            raise ConfigError(
                f"data.filters.duplicates={self.filters.duplicates} has to know the whole corpus, "
                "and data.streaming never does: set data.filters.duplicates=none, or "
                "data.streaming=false"
            )
