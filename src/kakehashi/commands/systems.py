"""What `kakehashi evaluate` scores: a test set, and the systems that translated it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kakehashi.errors import EvaluationError

if TYPE_CHECKING:
    from kakehashi.data.seen import Side
    from kakehashi.decoding.config import DecodingConfig
    from kakehashi.inference.options import Options
    from kakehashi.inference.translator import Translator


Key = tuple[Path, ...]
"""A file of translations, or a model with the others of its ensemble."""


@dataclass(frozen=True)
class TestSet:
    """Sentences and their true translations."""

    __test__ = False  # not a test of pytest's

    source_path: Path | None
    reference_path: Path
    sources: list[str] | None
    references: list[str]

    @classmethod
    def read(cls, source: Path | None, reference: Path) -> "TestSet":
        """Read both files.

        Raises:
            DataError: for a file that is missing or not text.
            EvaluationError: for unequal counts, and for none.
        """
        from kakehashi.data.reading import read_lines
        from kakehashi.evaluation.scores import check_counts

        references = read_lines(reference)
        sources = None if source is None else read_lines(source)
        if sources is not None:
            check_counts(sources, references, (str(source), str(reference)))
        return cls(source, reference, sources, references)

    def facts(self) -> dict[str, Any]:
        """For programs."""
        source = None if self.source_path is None else str(self.source_path)
        facts = {"source": source, "reference": str(self.reference_path)}
        return facts | {"lines": len(self.references)}

    def warnings(self) -> list[str]:
        """What the reader of the scores should know about the references."""
        from kakehashi.evaluation.checks import composition_warning

        warning = composition_warning(str(self.reference_path), self.references)
        return [] if warning is None else [warning]


@dataclass
class System:
    """One thing that is scored."""

    path: Path
    """As typed."""
    facts: dict[str, Any]
    """What it is: a model with its search, or a file."""
    hypotheses: list[str] = field(default_factory=list)
    translator: "Translator | None" = None
    """None for a file."""
    warnings: list[str] = field(default_factory=list)
    others: tuple[Path, ...] = ()
    """The other models of an ensemble."""

    @property
    def name(self) -> str:
        """What to call it."""
        return " with ".join(map(str, (self.path, *self.others)))


def file_system(path: Path, test: TestSet, *, tokenised: bool) -> System:
    """Ready translations; ``tokenised`` says that they are meant to be cut into words already.

    Raises:
        DataError: for a file that is missing or not text.
        EvaluationError: when it has another number of lines than the references.
    """
    from kakehashi.data.reading import read_lines
    from kakehashi.evaluation.checks import composition_warning, tokenised_warning
    from kakehashi.evaluation.scores import check_counts

    lines = read_lines(path)
    check_counts(lines, test.references, (str(path), str(test.reference_path)))
    found = [composition_warning(str(path), lines)]
    if not tokenised:
        found.append(tokenised_warning(str(path), lines))
    warnings = [warning for warning in found if warning is not None]
    return System(path, {"hypothesis": str(path)}, lines, warnings=warnings)


def model_system(key: Key, test: TestSet, options: "Options", translator: "Translator") -> System:
    """A model, or an ensemble, loaded but not asked to translate yet.

    Raises:
        ConfigError: for options that its search refuses.
        DataError: when its hashes of the training sentences are damaged.
    """
    config = options.search(translator.config.decoding)
    facts: dict[str, Any] = {"model": str(key[0]), "with": [str(path) for path in key[1:]]}
    facts |= _search_facts(options, config)
    found = [_seen_in_training(path, test) for path in key]
    facts["seen_in_training"] = found[0][0]
    warnings = [warning for _, warned in found for warning in warned]
    return System(key[0], facts, translator=translator, warnings=warnings, others=key[1:])


def _search_facts(options: "Options", config: "DecodingConfig") -> dict[str, Any]:
    from kakehashi.inference.options import MinimumRisk

    if isinstance(options.method, MinimumRisk):
        return {"mbr": options.method.samples, "seed": options.method.sampling.seed}
    settings = ("beam", "patience", "length_penalty", "coverage_penalty")
    return {setting: getattr(config, setting) for setting in settings}


def _seen_in_training(path: Path, test: TestSet) -> tuple[dict[str, int] | None, list[str]]:
    """How many test sentences stand in the model's training text, where it knows that."""
    from kakehashi.evaluation.checks import numbered
    from kakehashi.inference.folder import TRAINING_HASHES, training_sentences

    training = training_sentences(path)
    if training is None:
        return None, [
            f"{path} keeps no {TRAINING_HASHES}: whether it was trained on sentences of this test "
            "set is not known"
        ]
    counts, warnings = dict[str, int](), list[str]()
    sides: list[tuple[Side, Path | None, list[str]]] = [
        ("source", test.source_path, test.sources or []),
        ("target", test.reference_path, test.references),
    ]
    for side, name, lines in sides:
        found = training.lines_in(lines, side)
        counts[side] = len(found)
        if found:
            warnings.append(
                f"{name}: {len(found):,} of {len(lines):,} sentences occur in the training text of "
                f"{path}, letters and digits compared ({numbered(found)}); its scores are better "
                "than on sentences that it has not seen"
            )
    return counts, warnings


def language_of(systems: list[System], target_language: str | None) -> str | None:
    """The language that the systems write: the models', or the one that was given.

    Raises:
        EvaluationError: for two models that do not translate between the same languages.
    """
    models = [system for system in systems if system.translator is not None]
    pairs = []
    for system in models:
        assert system.translator is not None
        config = system.translator.config
        pairs.append((config.source_language, config.target_language))
    if len(set(pairs)) > 1:
        said = " and ".join(
            f"{model.name} translates {source} to {target}"
            for model, (source, target) in zip(models, pairs, strict=True)
        )
        raise EvaluationError(f"{said}; they cannot be compared on one test set")
    return pairs[0][1] if pairs else target_language
