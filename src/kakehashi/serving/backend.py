"""The seam between the service and a translator: tasks in, answers out."""

from collections.abc import Sequence
from math import exp, fsum
from pathlib import Path
from typing import Self, assert_never

import kakehashi
from kakehashi.inference.bundle import CARD, bundle_folder
from kakehashi.inference.parts import joint
from kakehashi.inference.translator import Translator
from kakehashi.serving.limits import Limits
from kakehashi.serving.schema import (
    Aligned,
    Answer,
    Bounds,
    Candidate,
    ModelAnswer,
    Scored,
    Translation,
    Word,
)
from kakehashi.serving.tasks import Aligning, Scoring, Task, Text, Translating
from kakehashi.serving.words import spelt, units


class TranslatorBackend:
    """A translator behind the queue; only its worker may call it."""

    def __init__(self, translator: Translator, card: str) -> None:
        self._translator = translator
        self._card = card
        config = translator.config
        self._spaced = [
            joint(language) != "" for language in (config.source_language, config.target_language)
        ]

    @classmethod
    def load(cls, path: Path, device: str | None) -> Self:
        """From a model or run folder.

        Raises:
            BundleError: when the folder cannot be used.
            ConfigError: when the device cannot.
        """
        translator = Translator.load(path, device)
        card = bundle_folder(path) / CARD
        return cls(translator, card.read_text("utf-8", "replace") if card.is_file() else "")

    def facts(self, limits: Limits) -> ModelAnswer:
        """What the service tells of the model."""
        config = self._translator.config
        return ModelAnswer(
            source_language=config.source_language,
            target_language=config.target_language,
            architecture=config.model.name,
            engine="torch",
            parameters=sum(p.numel() for p in self._translator.model.parameters()),
            vocabulary=config.vocab_size,
            max_length=config.max_length,
            beam=config.decoding.beam,
            length_penalty=config.decoding.length_penalty,
            kakehashi=kakehashi.__version__,
            limits=Bounds(
                body_bytes=limits.body,
                lines=limits.lines,
                characters=limits.characters,
                beam=limits.beam,
                seconds=limits.seconds,
            ),
            card=self._card,
        )

    def run(self, task: Task, texts: Sequence[Text]) -> list[Answer]:
        """One answer for each text, in order.

        Raises:
            ConfigError: for options that the model cannot follow.
        """
        match task:
            case Translating():
                return self._translations(task, [text for (text,) in texts])
            case Scoring():
                return [self._scored(source, target) for source, target in texts]
            case Aligning():
                return [self._aligned(source, target) for source, target in texts]
        assert_never(task)

    def _translations(self, task: Translating, texts: list[str]) -> list[Answer]:
        results = self._translator.translate(
            texts, beam=task.beam, length_penalty=task.length_penalty, n_best=task.n_best
        )
        answers: list[Answer] = []
        for text, result in zip(texts, results, strict=True):
            candidates = [Candidate(text=t, score=s) for t, s in result.hypotheses]
            source_words = None
            if task.details:
                for candidate in candidates:
                    aligned = self._aligned(text, candidate.text)
                    source_words = aligned.source_words
                    candidate.words = self._words(text, candidate.text, aligned)
            answers.append(
                Translation(
                    text=result.text,
                    score=result.score,
                    candidates=candidates,
                    source_words=source_words,
                    warnings=[warning.partition(": ")[2] for warning in result.warnings],
                )
            )
        return answers

    def _words(self, source: str, target: str, aligned: Aligned) -> list[Word]:
        pieces, scores = self._translator.score_tokens(source, target)
        words = []
        for number, unit in enumerate(units(pieces[:-1], spaced=self._spaced[1])):
            words.append(
                Word(
                    text=aligned.target_words[number],
                    probability=exp(min(0.0, fsum(scores[i] for i in unit))),
                    source=[s for s, t in aligned.pairs if t == number],
                )
            )
        return words

    def _scored(self, source: str, target: str) -> Scored:
        tokens, scores = self._translator.score_tokens(source, target)
        total = fsum(scores)
        return Scored(
            log_probability=total,
            perplexity=exp(-total / len(scores)),
            tokens=list(tokens),
            token_log_probabilities=list(scores),
        )

    def _aligned(self, source: str, target: str) -> Aligned:
        attention = self._translator.attention(source, target)
        maps = attention.maps.cross
        weights = maps[len(maps) - 2 if len(maps) > 2 else len(maps) - 1][0].mean(0)
        read, written = attention.source[:-1], attention.target_output[:-1]
        sources = units(read, spaced=self._spaced[0])
        targets = units(written, spaced=self._spaced[1])
        pairs = []
        for number, unit in enumerate(targets):
            mass = [float(weights[unit][:, other].sum()) for other in sources]
            most = max(mass, default=0.0)
            pairs += [(s, number) for s, m in enumerate(mass) if m >= most / 2]
        return Aligned(
            source_words=[spelt([read[i] for i in unit]) for unit in sources],
            target_words=[spelt([written[i] for i in unit]) for unit in targets],
            pairs=pairs,
        )
