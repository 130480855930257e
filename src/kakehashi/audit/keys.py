"""Sentences as 64-bit numbers, so that a million of them compare in no time and little memory."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kakehashi.audit.findings import Text
from kakehashi.data.integrity import normalised
from kakehashi.data.reading import is_blank

Numbers = NDArray[np.int64]
_LIMITS = np.iinfo(np.int64)


@dataclass(frozen=True)
class Keys:
    """Python's hash (64 bits, SipHash) of every sentence, as it stands and normalised.

    That two different sentences among a million share a number has a probability of about 3e-8.
    Blank ones have random numbers: they are no sentence, and repeat nothing.
    """

    exact_source: Numbers
    exact_target: Numbers
    source: Numbers
    """Of what `data.integrity.normalised` makes of it: letters, digits and marks, case folded."""
    target: Numbers
    full: NDArray[np.intp]
    """The indices of the pairs of which no side is blank."""

    @classmethod
    def of(cls, text: Text) -> "Keys":
        """The numbers of both sides."""
        exact, folded = [], []
        blanks = np.zeros(len(text), np.bool_)
        for side in (text.source, text.target):
            blank = np.fromiter(map(is_blank, side), np.bool_, len(side))
            blanks |= blank[: len(text)]
            exact.append(_numbers(side, blank))
            folded.append(_numbers(map(normalised, side), blank))
        return cls(exact[0], exact[1], folded[0], folded[1], np.flatnonzero(~blanks))


def _numbers(sentences: Iterable[str], blank: NDArray[np.bool_]) -> Numbers:
    numbers = np.fromiter(map(hash, sentences), np.int64, len(blank))
    numbers[blank] = np.random.default_rng().integers(_LIMITS.min, _LIMITS.max, int(blank.sum()))
    return numbers


def combine(source: Numbers, target: Numbers) -> Numbers:
    """One number for each pair of numbers."""
    n = min(len(source), len(target))
    # An odd multiplier keeps the two sides apart: (a, b) is not (b, a). Overflow wraps around.
    return source[:n] * np.int64(0x1E3779B97F4A7C15) + target[:n]


def repeated(numbers: Numbers) -> list[NDArray[np.intp]]:
    """The indices of each number that occurs more than once, in the order of first occurrence."""
    order = np.argsort(numbers, kind="stable")
    ends = np.flatnonzero(np.diff(numbers[order])) + 1
    groups = [group for group in np.split(order, ends) if len(group) > 1]
    return sorted(groups, key=lambda group: int(group[0]))
