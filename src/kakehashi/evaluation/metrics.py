"""BLEU, chrF and TER as sacreBLEU computes them, from sentence statistics that add up.

Papineni et al. (2002), BLEU; Popovic (2015), chrF; Snover et al. (2006), TER; Post (2018), A Call
for Clarity in Reporting BLEU Scores. Counting, formulas and signatures are sacreBLEU's. It is
called in blocks of lines, because it keeps every n-gram of the references it is given at once.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

Statistics = npt.NDArray[np.float64]
"""Counts of each sentence, ``[N, K]``; the counts of a set of sentences are their sum."""

NAMES = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER"}
SEED = 12345
"""sacreBLEU's own, so that its command line gives the same intervals and p-values."""
_BLOCK = 200
"""Lines counted at a time."""


class Metric:
    """One metric with its settings.

    Args:
        key: ``bleu``, ``chrf`` or ``ter``.
        tokenizer: how BLEU finds words, see ``bleu_tokenizer``; the others have their own ways.
        lowercase: whether BLEU and chrF take letters of both cases for the same; TER always does.
    """

    def __init__(self, key: str, tokenizer: str = "13a", *, lowercase: bool = False) -> None:
        self.key, self.name = key, NAMES[key]
        self._metric: BLEU | CHRF | TER
        self._for_sentences: BLEU | CHRF | TER
        if key == "bleu":
            # force: whether the text looks tokenised is for the caller to say, once
            self._metric = BLEU(lowercase, force=True, tokenize=tokenizer)
            # a sentence of three words has no 4-gram to match
            self._for_sentences = BLEU(
                lowercase, force=True, tokenize=tokenizer, effective_order=True
            )
        else:
            self._metric = CHRF(lowercase=lowercase) if key == "chrf" else TER()
            self._for_sentences = self._metric

    def statistics(
        self,
        hypotheses: Sequence[str],
        references: Sequence[str],
        advance: Callable[[int], None] = lambda lines: None,
    ) -> Statistics:
        """The counts of each sentence, ``[N, K]``.

        Args:
            hypotheses: N detokenised translations.
            references: as many, raw.
            advance: told how many lines more are done.
        """
        blocks = []
        for start in range(0, len(references), _BLOCK):
            here = slice(start, start + _BLOCK)
            counts = self._metric._extract_corpus_statistics(hypotheses[here], [references[here]])
            blocks.append(np.array(counts, np.float64))
            advance(len(counts))
        return np.concatenate(blocks)

    def score(self, total: npt.NDArray[np.float64]) -> float:
        """The score of a set of sentences from the sum of their counts, ``[K]``."""
        return _score(self._metric, total)

    def sentence_scores(self, statistics: Statistics) -> list[float]:
        """The score of each sentence by itself; BLEU with the orders that it is long enough for."""
        return [_score(self._for_sentences, row) for row in statistics]

    def signature(self, n_bootstrap: int) -> str:
        """SacreBLEU's: what is needed to compute the same again. Known once something is scored."""
        resampled = n_bootstrap > 1
        self._metric.n_bootstrap = n_bootstrap if resampled else None
        self._metric.seed = str(SEED) if resampled else None
        return str(self._metric.get_signature())


def _score(metric: Any, counts: npt.NDArray[np.float64]) -> float:
    return float(metric._compute_score_from_stats(counts.tolist()).score)
