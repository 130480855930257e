"""The seam between the service and a translator: tasks in, answers out."""

import re
from collections.abc import Sequence
from dataclasses import replace
from math import ceil, exp, fsum
from typing import assert_never

import kakehashi
from kakehashi.decoding.methods import Sampling
from kakehashi.errors import ConfigError
from kakehashi.inference import translation as found
from kakehashi.inference.options import Options
from kakehashi.inference.request import Request
from kakehashi.inference.scoring import Scored as Read
from kakehashi.inference.sentences import without_spaces
from kakehashi.inference.translator import Translator
from kakehashi.serving import schema
from kakehashi.serving.limits import Limits
from kakehashi.serving.tasks import Aligning, Attending, Scoring, Task, Text, Translating, strings
from kakehashi.serving.words import Word, word_pairs, words

_NUMBERED = re.compile(r"^line [\d,]+(:?) ")


class TranslatorBackend:
    """A translator behind the queue; only its worker may ``run`` it."""

    def __init__(self, translator: Translator, together: int, card: str = "") -> None:
        """Around a translator.

        Args:
            translator: the model.
            together: sentences that it computes at a time.
            card: its model card.
        """
        self._translator = translator
        self._together = together
        self._card = card
        config = translator.config
        self._source_spaced = not without_spaces(config.source_language)
        self._target_spaced = not without_spaces(config.target_language)

    def facts(self, limits: Limits) -> schema.ModelAnswer:
        """What the service tells of the model."""
        config = self._translator.config
        return schema.ModelAnswer(
            source_language=config.source_language,
            target_language=config.target_language,
            architecture=config.model.name,
            engine=self._translator.engine.name,
            vocabulary=config.vocab_size,
            max_length=config.max_length,
            beam=config.decoding.beam,
            length_penalty=config.decoding.length_penalty,
            kakehashi=kakehashi.__version__,
            limits=schema.Bounds(
                body_bytes=limits.body,
                lines=limits.lines,
                characters=limits.characters,
                beam=limits.beam,
                work=limits.work,
                attention=limits.attention,
                seconds=limits.seconds,
            ),
            card=self._card,
        )

    def run(self, task: Task, texts: Sequence[Text]) -> list[schema.Answer]:
        """One answer for each text, in order.

        Raises:
            ConfigError: for options that the model cannot follow.
        """
        match task:
            case Translating():
                options = replace(task.options, batch_size=self._together)
                requests = [text for text in texts if isinstance(text, Request)]
                results = self._translator.translate(requests, options)
                return [self._translation(result, options) for result in results]
            case Scoring():
                return [_scored(read) for read in self._read(texts)]
            case Aligning():
                return [self._aligned(read) for read in self._read(texts)]
            case Attending():
                return [
                    self._attended(text.text, task.beam)
                    for text in texts
                    if isinstance(text, Request)
                ]
        assert_never(task)

    def work(self, task: Task, texts: Sequence[Text]) -> list[int]:
        """See ``Backend.work``."""
        width = self._width(task)
        return [width * self._pieces(text) for text in texts]

    def _width(self, task: Task) -> int:
        """Hypotheses of a text that are kept together, and those that are read once more."""
        own = self._translator.config.decoding.beam
        if isinstance(task, Attending):
            return 2 * (task.beam or own)  # every hypothesis is searched, and read once more
        if not isinstance(task, Translating):
            return 1
        options = task.options
        if isinstance(options.method, Sampling):
            return options.n_best
        beam = max(options.beam or own, options.n_best)
        return beam + options.n_best if options.details else beam

    def _pieces(self, text: Text) -> int:
        pieces = sum(map(len, self._translator.tokenizer.encode_batch(strings(text)))) + 1
        cut = isinstance(text, Request) and not text.prefix and not text.required
        return pieces if cut else pieces * ceil(pieces / self._translator.config.max_length)

    def _read(self, texts: Sequence[Text]) -> list[Read]:
        pairs = [text for text in texts if not isinstance(text, Request)]
        return list(self._translator.score(pairs, self._together))

    def _translation(self, result: found.Translation, options: Options) -> schema.Translation:
        sources = words(result.source_tokens, spaced=self._source_spaced)
        return schema.Translation(
            text=result.text,
            score=result.score,
            candidates=[
                schema.Candidate(
                    text=candidate.text,
                    score=candidate.score,
                    log_probability=candidate.log_probability,
                    words=self._words(candidate, sources) if options.details else None,
                )
                for candidate in result.hypotheses
            ],
            source_words=[word.text for word in sources] if options.details else None,
            warnings=[_unnumbered(warning) for warning in result.warnings],
        )

    def _words(self, candidate: found.Candidate, sources: list[Word]) -> list[schema.Word]:
        targets = words(candidate.tokens, spaced=self._target_spaced)
        pairs = word_pairs(candidate.alignment, sources, targets)
        return [
            schema.Word(
                text=word.text,
                probability=exp(
                    min(0.0, fsum(candidate.token_log_probabilities[i] for i in word.pieces))
                ),
                source=[s for s, t in pairs if t == at],
            )
            for at, word in enumerate(targets)
        ]

    def _attended(self, text: str, beam: int | None) -> schema.Attended:
        name = self._translator.engine.name
        if name != "torch":
            raise ConfigError(
                f"the {name} engine does not show how it attends: serve with --engine torch"
            )
        from kakehashi.insight.explorer.payload import payload
        from kakehashi.insight.explorer.scene import scene

        return schema.Attended(**payload([scene(self._translator, text, beam=beam)]))

    def _aligned(self, read: Read) -> schema.Aligned:
        sources = words(read.source_tokens, spaced=self._source_spaced)
        targets = words(read.tokens, spaced=self._target_spaced)
        return schema.Aligned(
            source_words=[word.text for word in sources],
            target_words=[word.text for word in targets],
            pairs=word_pairs(read.alignment, sources, targets),
        )


def _scored(read: Read) -> schema.Scored:
    return schema.Scored(
        log_probability=read.log_probability,
        perplexity=read.perplexity,
        tokens=list(read.tokens),
        token_log_probabilities=list(read.token_log_probabilities),
    )


def _unnumbered(warning: str) -> str:
    """A warning without the number of its line, which counts lines of other requests too."""
    return _NUMBERED.sub(lambda number: "" if number[1] else "the text ", warning)
