"""Minimum Bayes risk: of many translations the one that the others agree with most.

Kumar and Byrne (2004), "Minimum Bayes-Risk Decoding for Statistical Machine Translation"; over
samples of the model Eikema and Aziz (2020), "Is MAP Decoding All You Need?".
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Utility = Callable[[Sequence[str], Sequence[str]], npt.NDArray[np.float64]]
"""How good each of N translations is if each of M were the reference: [N, M], greater is better."""


@dataclass(frozen=True)
class Expected:
    """A translation among those that were drawn."""

    text: str
    first: int
    """Its place among the draws; of a text that was drawn several times the first one."""
    count: int
    """How often it was drawn."""
    utility: float
    """Mean utility against all draws, itself among them: the estimate of its expected utility."""


def by_expected_utility(samples: Sequence[str], utility: Utility) -> list[Expected]:
    """The different translations among the draws, from the least Bayes risk to the greatest.

    Of equals the one drawn first comes first.
    """
    count = Counter(samples)
    texts = list(count)  # in the order they were first drawn
    weights = np.array([count[text] for text in texts], np.float64)
    expected = utility(texts, texts) @ weights / len(samples)
    # Rounded, because equals that are summed up differently differ in their last digit.
    order = np.argsort(-expected.round(9), kind="stable").tolist()
    return [
        Expected(texts[i], samples.index(texts[i]), count[texts[i]], float(expected[i]))
        for i in order
    ]
