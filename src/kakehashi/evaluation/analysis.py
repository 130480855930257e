"""Everything that a report says of a translated test set beside its scores."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

from kakehashi.evaluation.flaws import Flaw, Sentence, flaws
from kakehashi.evaluation.lengths import LengthGroup, by_length
from kakehashi.evaluation.metrics import Metric
from kakehashi.evaluation.ngrams import FrequencyGroup, NGrams, by_frequency, frequencies, ngrams
from kakehashi.evaluation.tokenizers import bleu_tokenizer
from kakehashi.evaluation.words import words_of

SHOWN = 8
"""Sentences named as the best, and as the worst."""


@dataclass(frozen=True)
class Judged:
    """One sentence with its own scores."""

    line: int
    """From 1."""
    source: str
    translation: str
    reference: str
    chrf: float
    bleu: float


@dataclass(frozen=True)
class Analysis:
    """Of one test set."""

    sentences: int
    exact: int
    """Translations that are their references, to the letter."""
    tokenizer: str
    """How words were found in the target language: sacreBLEU's name."""
    lengths: list[LengthGroup]
    """By words of the source."""
    ngrams: NGrams
    frequencies: list[FrequencyGroup]
    flaws: list[Flaw]
    examples: dict[int, tuple[str, str]]
    """Source and translation of the lines that flaws name."""
    worst: list[Judged]
    best: list[Judged]

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it, where keys are text."""
        plain = asdict(self)
        plain["examples"] = {str(line): texts for line, texts in self.examples.items()}
        return plain


def analyse(
    sources: Sequence[str],
    translations: Sequence[str],
    references: Sequence[str],
    training: Iterable[str],
    languages: tuple[str, str],
) -> Analysis:
    """Analyse a test set; the same text gives the same analysis, on every machine.

    Args:
        sources: N sentences.
        translations: what a model has made of them.
        references: their true translations.
        training: the target side of the training text, read once for the frequency of words.
        languages: codes of source and target language.
    """
    source_words, words = map(words_of, languages)
    said = [words(line) for line in translations]
    wanted = [words(line) for line in references]
    metrics = Metric("bleu", bleu_tokenizer(languages[1])[0]), Metric("chrf")
    bleu, chrf = ((metric, metric.statistics(translations, references)) for metric in metrics)
    texts = list(zip(sources, translations, references, strict=True))
    sentences = [
        Sentence(n, *text, tuple(ours), tuple(theirs))
        for n, (text, ours, theirs) in enumerate(zip(texts, said, wanted, strict=True), 1)
    ]
    found = flaws(sentences, words)
    named = sorted({line for flaw in found for line in flaw.lines})
    scores = [metric.sentence_scores(table) for metric, table in (chrf, bleu)]
    judged = [
        Judged(n, *text, *own)
        for n, (text, own) in enumerate(zip(texts, zip(*scores, strict=True), strict=True), 1)
    ]
    seen = frequencies(training, words, chain(*said, *wanted))
    return Analysis(
        sentences=len(texts),
        exact=sum(ours == theirs for _, ours, theirs in texts),
        tokenizer=bleu_tokenizer(languages[1])[0],
        lengths=by_length([len(source_words(line)) for line in sources], bleu, chrf),
        ngrams=ngrams(bleu[1].sum(0)),
        frequencies=by_frequency(said, wanted, seen),
        flaws=found,
        examples={line: (texts[line - 1][0], texts[line - 1][1]) for line in named},
        worst=sorted(judged, key=lambda j: (j.chrf, -len(j.reference), j.line))[:SHOWN],
        best=sorted(judged, key=lambda j: (-j.chrf, -len(j.reference), j.line))[:SHOWN],
    )
