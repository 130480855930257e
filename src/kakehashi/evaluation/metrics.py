"""BLEU and chrF as sacreBLEU computes them, with their signatures and 95 % intervals.

Post (2018), A Call for Clarity in Reporting BLEU Scores; Koehn (2004), Statistical Significance
Tests for Machine Translation Evaluation (the bootstrap); Popovic (2015), chrF.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from kakehashi.errors import EvaluationError

N_BOOTSTRAP = 1000
"""Resampled test sets behind an interval."""

_LANGUAGES = {"zh": "zh", "zho": "zh", "cmn": "zh", "yue": "zh", "ja": "ja", "jpn": "ja"}
_LANGUAGES |= {"ko": "ko", "kor": "ko"}
_MECAB = {"ja": "ja-mecab", "ko": "ko-mecab"}


@dataclass(frozen=True)
class Score:
    """One metric's verdict on a whole test set."""

    name: str
    value: float
    """From 0 to 100, more is better."""
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
class Scores:
    """The verdicts on one test set, and what the reader should know about them."""

    bleu: Score
    chrf: Score
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([str(self.bleu), str(self.chrf), *(f"note: {n}" for n in self.notes)])


def corpus_scores(
    hypotheses: Sequence[str],
    references: Sequence[str],
    target_language: str,
    *,
    n_bootstrap: int = N_BOOTSTRAP,
    names: tuple[str, str] = ("the hypotheses", "the references"),
) -> Scores:
    """BLEU and chrF of detokenised hypotheses against one raw reference each.

    The intervals are sacreBLEU's: mean of ``n_bootstrap`` resampled test sets plus and minus half
    the width of the middle 95 %, with the seed that stands in the signature; 0 leaves them out.

    Args:
        hypotheses: one translation a line.
        references: one human translation a line, as it was published.
        target_language: decides BLEU's tokenizer, see ``bleu_tokenizer``.
        n_bootstrap: resampled test sets behind each interval.
        names: what to call the two sides in an error: their files, where they have any.

    Raises:
        EvaluationError: for unequal counts (sacreBLEU itself would score the shorter part without
            a word) and for an empty set.
    """
    check_counts(hypotheses, references, names)
    tokenizer, notes = bleu_tokenizer(target_language)
    scores = []
    for metric in (_BLEU(tokenize=tokenizer), _CHRF()):
        result = metric.corpus_score(list(hypotheses), [list(references)], n_bootstrap=n_bootstrap)
        signature = str(metric.get_signature())
        low = high = None
        if n_bootstrap > 1:
            mean, half = float(result._mean), float(result._ci)
            low, high = mean - half, mean + half
        name = "chrF" if isinstance(metric, CHRF) else "BLEU"
        scores.append(Score(name, float(result.score), signature, low, high))
    return Scores(scores[0], scores[1], notes)


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


class _BLEU(BLEU):
    """sacreBLEU's BLEU in plain numbers.

    Its interval cannot mix numpy's float32 with the plain 0.0 of a resampled set that matches
    nothing.
    """

    def _compute_score_from_stats(self, stats: Any) -> Any:
        result = super()._compute_score_from_stats(stats)
        result.score = float(result.score)
        return result


class _CHRF(CHRF):
    """The same for chrF."""

    def _compute_score_from_stats(self, stats: Any) -> Any:
        result = super()._compute_score_from_stats(stats)
        result.score = float(result.score)
        return result


def bleu_tokenizer(language: str) -> tuple[str, tuple[str, ...]]:
    """The sacreBLEU tokenizer for a target language, and what to tell about the choice.

    zh for Chinese, MeCab for Japanese and Korean where it is installed and characters otherwise
    (then the note says so), 13a for every other language.
    """
    code = re.split(r"[-_]", language.lower())[0]
    language = _LANGUAGES.get(code, code)
    if language == "zh":
        return "zh", ()
    if language not in _MECAB:
        return "13a", ()
    try:
        BLEU(tokenize=_MECAB[language])
    except RuntimeError:
        return "char", (
            f"BLEU counts characters, not words, because MeCab is not installed; for {language} "
            f"words (and comparable figures): pip install 'sacrebleu[{language}]'",
        )
    return _MECAB[language], ()
