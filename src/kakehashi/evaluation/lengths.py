"""How good translations are by the length of what was translated."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kakehashi.evaluation.metrics import Metric, Statistics

LAST = (5, 10, 15, 20, 30, 40, 60)
"""The last length of each group; what is longer makes one more."""


@dataclass(frozen=True)
class LengthGroup:
    """Sentences of like length."""

    shortest: int
    longest: int | None
    """None: no limit."""
    sentences: int
    bleu: float
    chrf: float
    ratio: float
    """Words of the translations by words of the references; 0 where the latter have none."""


def by_length(
    lengths: Sequence[int],
    bleu: tuple[Metric, Statistics],
    chrf: tuple[Metric, Statistics],
) -> list[LengthGroup]:
    """The scores of each group of lengths that has sentences.

    Args:
        lengths: words of each of N source sentences.
        bleu: the metric and its counts of each sentence, ``[N, K]``.
        chrf: the same.
    """
    groups = np.array([bisect_left(LAST, length) for length in lengths])
    found = []
    for number in range(len(LAST) + 1):
        rows = groups == number
        if not rows.any():
            continue
        totals = [table[rows].sum(0) for _, table in (bleu, chrf)]
        said, wanted = totals[0][:2]
        found.append(
            LengthGroup(
                LAST[number - 1] + 1 if number else 0,
                LAST[number] if number < len(LAST) else None,
                int(rows.sum()),
                bleu[0].score(totals[0]),
                chrf[0].score(totals[1]),
                float(said / wanted) if wanted else 0.0,
            )
        )
    return found
