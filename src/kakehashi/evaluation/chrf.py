"""chrF of every translation against every other, as sacreBLEU computes it for sentences.

Popovic (2015): character n-grams of 1 to 6, white space left out, recall counting twice as much as
precision. sacreBLEU counts the n-grams of both sentences for each pair anew; here each text is
counted once, which for the n * n pairs of minimum Bayes risk is what makes it affordable.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_ORDERS = range(1, 7)
_BETA = 2


def pairwise_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> npt.NDArray[np.float64]:
    """The chrF of hypothesis i against reference j, from 0 to 100: ``[N, M]``.

    The same numbers as ``sacrebleu.sentence_chrf`` with its defaults.
    """
    shape = len(hypotheses), len(references)
    precision, recall, orders = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    texts = ["".join(text.split()) for text in (*hypotheses, *references)]
    for order in _ORDERS:
        counts = _counts(texts, order)
        said, wanted = counts[: shape[0]], counts[shape[0] :]
        matches = np.stack([np.minimum(row, wanted).sum(axis=1) for row in said])
        n_said, n_wanted = said.sum(axis=1)[:, None], wanted.sum(axis=1)[None, :]
        precision += matches / np.maximum(n_said, 1)
        recall += matches / np.maximum(n_wanted, 1)
        # An order that one of the two is too short for does not count.
        orders += (n_said > 0) & (n_wanted > 0)
    precision, recall = (total / np.maximum(orders, 1) for total in (precision, recall))
    scale = _BETA**2 * precision + recall
    return 100 * (1 + _BETA**2) * precision * recall / np.where(scale > 0, scale, 1)


def _counts(texts: Sequence[str], order: int) -> npt.NDArray[np.int64]:
    """How often each text holds each n-gram of an order that occurs in any of them."""
    grams = [Counter(text[i : i + order] for i in range(len(text) - order + 1)) for text in texts]
    column = {gram: place for place, gram in enumerate(sorted(set().union(*grams)))}
    counts = np.zeros((len(texts), len(column)), np.int64)
    for row, held in zip(counts, grams, strict=True):
        row[[column[gram] for gram in held]] = list(held.values())
    return counts
