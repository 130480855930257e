"""The verdict on a test set: scores with signatures and 95 % intervals, and differences."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kakehashi.errors import EvaluationError
from kakehashi.evaluation.bootstrap import interval, p_value, resample
from kakehashi.evaluation.checks import composition_warning
from kakehashi.evaluation.metrics import Metric, Statistics
from kakehashi.evaluation.tokenizers import bleu_tokenizer

N_BOOTSTRAP = 1000
"""Resampled test sets behind an interval."""


@dataclass(frozen=True)
class Score:
    """One metric's verdict on a whole test set."""

    name: str
    value: float
    """BLEU and chrF: from 0 to 100, more is better. TER: edits for 100 words of the reference,
    less is better."""
    signature: str
    """sacreBLEU's: everything needed to compute the same number again."""
    low: float | None = None
    """Bounds of the 95 % bootstrap interval; None where none was asked for."""
    high: float | None = None

    def __str__(self) -> str:
        interval = ""
        if self.low is not None and self.high is not None:
            interval = f" (95 % interval {self.low:.2f} to {self.high:.2f})"
        return f"{self.name} {self.value:.2f}{interval} {self.signature}"


@dataclass(frozen=True)
class Difference:
    """How far the first of two systems is from the second, by one metric."""

    value: float
    """First minus second."""
    p_value: float
    """By paired bootstrap, see ``bootstrap.p_value``."""


@dataclass(frozen=True)
class Evaluation:
    """One or two systems on one test set."""

    metrics: tuple[Metric, ...]
    statistics: tuple[tuple[Statistics, ...], ...]
    """Of each system, and of it for each metric: the counts of each sentence."""
    scores: tuple[tuple[Score, ...], ...]
    """Of each system, and of it for each metric."""
    differences: tuple[Difference, ...]
    """For each metric; empty for a single system."""

    def sentence_scores(self, system: int) -> dict[str, list[float]]:
        """Metric by metric the scores of each sentence."""
        tables = zip(self.metrics, self.statistics[system], strict=True)
        return {metric.key: metric.sentence_scores(table) for metric, table in tables}


@dataclass(frozen=True)
class Scores:
    """The verdict that a training run gives, and what the reader should know about it."""

    bleu: Score
    chrf: Score
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([str(self.bleu), str(self.chrf), *(f"note: {n}" for n in self.notes)])


def evaluate(
    systems: Sequence[Sequence[str]],
    references: Sequence[str],
    metrics: Sequence[Metric],
    *,
    n_bootstrap: int = N_BOOTSTRAP,
    names: Sequence[str] = (),
    advance: Callable[[int], None] = lambda lines: None,
) -> Evaluation:
    """Score one system, or two against each other on the same resampled test sets.

    The intervals are sacreBLEU's: mean of ``n_bootstrap`` resampled test sets plus and minus half
    the width of the middle 95 %, with the seed that stands in the signature.

    Args:
        systems: of each a detokenised translation a line.
        references: one human translation a line, as it was published.
        metrics: what to score by.
        n_bootstrap: resampled test sets; 0 leaves out intervals and p-values.
        names: what to call systems, then references, in an error: their files, if there are any.
        advance: told, for each system and metric, how many lines more are done.

    Raises:
        EvaluationError: for unequal counts (sacreBLEU itself would score the shorter part without
            a word) and for an empty set.
    """
    names = names or [*("the hypotheses" for _ in systems), "the references"]
    for name, hypotheses in zip(names, systems, strict=False):
        check_counts(hypotheses, references, (name, names[-1]))
    tables = [[m.statistics(h, references, advance) for m in metrics] for h in systems]
    samples = resample(metrics, tables, n_bootstrap) if n_bootstrap > 1 else None
    scores = []
    for i, system in enumerate(tables):
        row = []
        for j, (metric, table) in enumerate(zip(metrics, system, strict=True)):
            bounds = (None, None) if samples is None else interval(samples[i, j])
            value = metric.score(table.sum(0))
            row.append(Score(metric.name, value, metric.signature(n_bootstrap), *bounds))
        scores.append(tuple(row))
    differences = []
    if len(systems) == 2 and samples is not None:
        for j, (first, second) in enumerate(zip(*scores, strict=True)):
            value = first.value - second.value
            differences.append(Difference(value, p_value(samples[0, j], samples[1, j], value)))
    return Evaluation(tuple(metrics), tuple(map(tuple, tables)), tuple(scores), tuple(differences))


def corpus_scores(
    hypotheses: Sequence[str],
    references: Sequence[str],
    target_language: str,
    *,
    n_bootstrap: int = N_BOOTSTRAP,
    names: tuple[str, str] = ("the hypotheses", "the references"),
) -> Scores:
    """BLEU and chrF of detokenised hypotheses against one raw reference each; see ``evaluate``.

    BLEU's tokenizer follows the target language, see ``bleu_tokenizer``. The notes say where a side
    is not in Unicode's composed form.
    """
    tokenizer, notes = bleu_tokenizer(target_language)
    metrics = [Metric("bleu", tokenizer), Metric("chrf")]
    found = evaluate([hypotheses], references, metrics, n_bootstrap=n_bootstrap, names=names)
    bleu, chrf = found.scores[0]
    composed = map(composition_warning, names, (hypotheses, references))
    return Scores(bleu, chrf, (*notes, *filter(None, composed)))


def corpus_bleu(
    hypotheses: Sequence[str], references: Sequence[str], target_language: str
) -> float:
    """BLEU alone, without an interval: what validation asks for again and again."""
    metric = Metric("bleu", bleu_tokenizer(target_language)[0])
    return evaluate([hypotheses], references, [metric], n_bootstrap=0).scores[0][0].value


def check_counts(left: Sequence[str], right: Sequence[str], names: tuple[str, str]) -> None:
    """Refuse sides that cannot belong together.

    Raises:
        EvaluationError: for unequal counts, naming both, and for none at all.
    """
    if len(left) != len(right):
        raise EvaluationError(
            f"{names[0]} and {names[1]} have {len(left):,} and {len(right):,} lines; "
            "they must be the same sentences in the same order"
        )
    if not right:
        raise EvaluationError(f"{names[0]} and {names[1]} are empty: there is nothing to score")
