"""What BLEU is made of, and how words fare by how often training has shown them.

The second as in Neubig et al. (2019), compare-mt.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kakehashi.evaluation.words import Words

ORDERS = 4
LAST = (0, 5, 20, 100, 1000)
"""The last frequency of each group; what is more frequent makes one more."""


@dataclass(frozen=True)
class NGrams:
    """The parts of a corpus BLEU."""

    matched: tuple[int, ...]
    """n-grams of the translations that are in their references, for n from 1 to 4."""
    said: tuple[int, ...]
    """n-grams of the translations."""
    brevity_penalty: float
    ratio: float
    """Words of the translations by words of the references."""


def ngrams(total: npt.NDArray[np.float64]) -> NGrams:
    """From the sum of BLEU's counts: both lengths, then matches, then n-grams, of four orders."""
    said, wanted = total[:2]
    shorter = 0 < said < wanted
    penalty = float(np.exp(1 - wanted / said)) if shorter else float(said > 0)
    matches = tuple(int(count) for count in total[2 : 2 + ORDERS])
    counts = tuple(int(count) for count in total[2 + ORDERS : 2 + 2 * ORDERS])
    return NGrams(matches, counts, penalty, float(said / wanted) if wanted else 0.0)


@dataclass(frozen=True)
class FrequencyGroup:
    """Words that training has shown about equally often."""

    fewest: int
    most: int | None
    """None: no limit."""
    wanted: int
    """Such words of the references, each as often as it stands there."""
    said: int
    """Such words of the translations."""
    right: int
    """Those that are in both, sentence by sentence, each at most as often as in either."""


def by_frequency(
    translations: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    seen: Mapping[str, int],
) -> list[FrequencyGroup]:
    """How many words of each group were wanted, said, and right; recall and precision follow.

    Args:
        translations: the words of each.
        references: the words of each.
        seen: how often the training text has a word; what it lacks was never seen.
    """
    wanted, said, right = ([0] * (len(LAST) + 1) for _ in range(3))
    for translation, reference in zip(translations, references, strict=True):
        ours, theirs = Counter(translation), Counter(reference)
        for counts, into in ((theirs, wanted), (ours, said), (ours & theirs, right)):
            for word, times in counts.items():
                into[bisect_left(LAST, seen.get(word, 0))] += times
    rows = zip((0, *(last + 1 for last in LAST)), (*LAST, None), wanted, said, right, strict=True)
    return [FrequencyGroup(*row) for row in rows]


def frequencies(lines: Iterable[str], words: Words, asked: Iterable[str]) -> dict[str, int]:
    """How often each of the words asked for stands in a text."""
    wanted = frozenset(asked)
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(word for word in words(line) if word in wanted)
    return dict(counts)
