"""Resampled test sets: how much of a score, or of a difference, is the choice of sentences.

Koehn (2004), Statistical Significance Tests for Machine Translation Evaluation. The resampled sets,
intervals and p-values are sacreBLEU's; it draws all sets at once and copies every sentence's counts
for each (GBs for 50,000 lines), here one set at a time is a vector of how often each sentence is in
it.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kakehashi.evaluation.metrics import SEED, Metric, Statistics

Samples = npt.NDArray[np.float64]


def resample(
    metrics: Sequence[Metric], systems: Sequence[Sequence[Statistics]], n_samples: int
) -> Samples:
    """Scores of every system on the same resampled test sets.

    Args:
        metrics: M metrics.
        systems: of each of S systems the M tables of counts, ``[N, K]``.
        n_samples: how many sets of N sentences are drawn, with replacement.

    Returns:
        Scores, ``[S, M, n_samples]``.
    """
    tables = [table for system in systems for table in system]
    ends = np.cumsum([table.shape[1] for table in tables])[:-1]
    counts = np.concatenate(tables, axis=1)
    n_sentences = len(counts)
    scores = np.empty((len(systems), len(metrics), n_samples))
    generator = np.random.default_rng(SEED)
    for sample in range(n_samples):
        drawn = generator.choice(n_sentences, size=n_sentences, replace=True)
        times = np.bincount(drawn, minlength=n_sentences).astype(np.float64)
        for i, total in enumerate(np.split(times @ counts, ends)):
            system, metric = divmod(i, len(metrics))
            scores[system, metric, sample] = metrics[metric].score(total)
    return scores


def interval(scores: Samples) -> tuple[float, float]:
    """The 95 % interval: mean of the samples, ``[n]``, plus and minus half their middle 95 %."""
    ordered = np.sort(scores)
    tail = len(ordered) // 40
    half = 0.5 * (ordered[-1 - tail] - ordered[tail])
    mean = ordered.mean()
    return float(mean - half), float(mean + half)


def p_value(first: Samples, second: Samples, difference: float) -> float:
    """How probable so large a difference would be if both systems were equally good.

    The share of resampled sets in which the absolute difference lies above its mean by as much as
    ``difference`` or more, one added above and below the line. sacreBLEU counts only "more", and so
    finds a system significantly different (p = 0.001) from itself; here that is p = 1.

    Like sacreBLEU's it is lenient: the mean that is taken off is that of the absolute differences,
    so that it is below 0.05 for more than one pair of equal systems in twenty. An interval of the
    difference that holds 0 is the safer sign.

    Args:
        first: scores of one system, ``[n]``.
        second: scores of the other on the same sets.
        difference: of their scores on the whole test set.
    """
    differences = np.abs(first - second)
    as_large = np.sum(differences - differences.mean() >= abs(difference))
    return float((as_large + 1) / (len(differences) + 1))
