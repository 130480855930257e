"""Translating lines of text with a finished model."""

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Self

from kakehashi.data.reading import is_blank
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.decoding.mbr import by_expected_utility
from kakehashi.decoding.rules import Rules
from kakehashi.errors import ConfigError
from kakehashi.inference.alignment import Pairs, piece_alignment, word_alignment
from kakehashi.inference.batches import WINDOW, length_batches, windows
from kakehashi.inference.engine import Engine, Followed
from kakehashi.inference.line_words import line_words, piece_words, written_words
from kakehashi.inference.options import MinimumRisk, Options
from kakehashi.inference.parts import joint, parts
from kakehashi.inference.request import Request
from kakehashi.inference.scoring import (
    Aligned,
    Scored,
    aligned,
    scored_pairs,
    scored_tokens,
)
from kakehashi.inference.settings import BundleConfig
from kakehashi.inference.symbols import changed_symbols
from kakehashi.inference.translation import (
    BLANK,
    Candidate,
    Line,
    Translation,
    join_parts,
    one_line,
)
from kakehashi.symbols import EOS

if TYPE_CHECKING:
    from kakehashi.decoding.hypothesis import Hypothesis
    from kakehashi.inference.bundle import Bundle


class Translator:
    """A finished model with everything needed to translate lines of text.

    A line is translated as if it were alone: order, count and neighbours of the lines change
    nothing (scores within 1e-4, the room that floating point takes).
    """

    def __init__(self, engine: Engine, tokenizer: Tokenizer, config: BundleConfig) -> None:
        self.engine = engine
        self.tokenizer = tokenizer
        self.config = config
        symbols = tokenizer.settings.symbols
        self._symbols = dict(zip(tokenizer.symbol_numbers(), symbols, strict=True))

    @classmethod
    def load(
        cls,
        path: str | Path | Sequence[str | Path],
        device: str | None = None,
        engine: str = "torch",
    ) -> Self:
        """From a model folder or a run folder; from several, which then translate as one.

        At every step an ensemble takes the mean of what its models expect. They must share the
        tokenizer; the search is that of the first.

        Args:
            path: the folder, or several.
            device: cpu (the default), cuda, or auto: the GPU if there is one.
            engine: torch, or ctranslate2 for one Transformer that was exported for it (the folder
                of the export, or one that holds it as ``ctranslate2``).

        Raises:
            BundleError: when a folder cannot be used, or the models do not go together.
            ConfigError: when the device or the engine cannot.
        """
        paths = [path] if isinstance(path, str | Path) else path
        if engine == "ctranslate2":
            from kakehashi.inference.exported import load_exported

            if len(paths) > 1:
                raise ConfigError("the ctranslate2 engine runs one model: use --engine torch")
            return cls(*load_exported(paths[0], device))
        if engine != "torch":
            raise ConfigError(f"unknown engine {engine!r}; there are torch and ctranslate2")
        from kakehashi.inference.bundle import load_bundle
        from kakehashi.inference.device import choose_device

        chosen = choose_device(device)
        return cls.of(*(load_bundle(one, chosen) for one in paths))

    @classmethod
    def of(cls, *bundles: "Bundle") -> Self:
        """With a model that has been loaded, or just trained; with several, an ensemble.

        Raises:
            BundleError: when they differ in tokenizer or languages.
        """
        from kakehashi.inference.bundle import together
        from kakehashi.inference.torch_engine import TorchEngine

        first = bundles[0]
        return cls(TorchEngine(together(bundles)), first.tokenizer, first.config)

    def translate(
        self, lines: Sequence[str | Request], options: Options | None = None
    ) -> list[Translation]:
        """One translation a line, in order; see ``stream``."""
        return list(self.stream(lines, options))

    def stream(
        self, lines: Iterable[str | Request], options: Options | None = None
    ) -> Iterator[Translation]:
        """Translate lines as they come, in order, reading 32 batches ahead.

        With a batch size of 1 nothing is read ahead: every line is answered before the next is
        asked for. A line without visible characters comes out empty, without being decoded. A line
        longer than any sentence of the model's training is cut into parts, near sentence ends where
        it has some, unless there are rules for its translation; each part is translated by itself,
        and a warning says so. A translation is one line: line breaks that a model writes become
        spaces.

        Args:
            lines: source text, one sentence (or what the model was trained on) a line; a
                ``Request`` is a line with rules for its translation.
            options: how; None: as the model says.

        Raises:
            ConfigError: for an option out of range.
            DataError: whatever ``lines`` raises, after the lines before it have been translated.
        """
        if isinstance(lines, str):
            raise TypeError("lines must be a list of lines, not one text: use [text]")
        options = options or Options()
        config = options.search(self.config.decoding)
        return self._windows(lines, config, options)

    def _windows(
        self, lines: Iterable[str | Request], config: DecodingConfig, options: Options
    ) -> Iterator[Translation]:
        size = 1 if config.batch_size == 1 else WINDOW * config.batch_size
        first = 1
        for window in windows(lines, size):
            yield from self._window(self._read(window, first), config, options)
            first += len(window)

    def _read(self, lines: list[str | Request], first: int) -> list[Line]:
        """Pieces of each line; a line longer than the model's training in parts."""
        read = []
        requests = [Request(line) if isinstance(line, str) else line for line in lines]
        rows = self.tokenizer.encode_batch([request.text for request in requests])
        for number, (request, row) in enumerate(zip(requests, rows, strict=True), first):
            line, rules = request.text, request.rules(self.tokenizer)
            texts, pieces = ([], []) if is_blank(line) else ([line], [row])
            if pieces and rules.empty and not self._fits(row):
                texts = list(parts(line, lambda part: self._fits(self.tokenizer.encode(part))))
                pieces = self.tokenizer.encode_batch(texts)
            read.append(Line(number, len(row) + 1, pieces, rules, line, texts))
        return read

    def _fits(self, row: Sequence[int]) -> bool:
        return len(row) + 1 <= self.config.max_length

    def _window(
        self, lines: list[Line], config: DecodingConfig, options: Options
    ) -> Iterator[Translation]:
        """Decode the parts of all lines by length; each line comes out once those before it have.

        A long line, decoded last, does not hold up those before it. Equal parts are decoded once.
        """
        places: dict[tuple[tuple[int, ...], Rules], list[tuple[Line, int]]] = {}
        for line in lines:
            for number, part in enumerate(line.parts):
                places.setdefault((tuple(part), line.rules), []).append((line, number))
        keys = list(places)
        waiting = deque(lines)
        for batch in length_batches([len(row) + 1 for row, _ in keys], config.batch_size):
            chosen = [keys[index] for index in batch]
            rows = [row for row, _ in chosen]
            start = time.perf_counter()
            found = self._search(rows, [rules for _, rules in chosen], config, options)
            read = self._follow(rows, found) if options.details else [[] for _ in batch]
            seconds = (time.perf_counter() - start) / len(batch)
            for key, hypotheses, followed in zip(chosen, found, read, strict=True):
                for line, number in places[key]:
                    line.found[number], line.read[number] = hypotheses, followed
                    line.seconds += seconds
            while waiting and waiting[0].done:
                yield self._translation(waiting.popleft(), options)
        for line in waiting:  # nothing but blank lines
            yield self._translation(line, options)

    def _search(
        self,
        rows: Sequence[tuple[int, ...]],
        rules: Sequence[Rules],
        config: DecodingConfig,
        options: Options,
    ) -> list[list["Hypothesis"]]:
        method = options.method
        given = None if all(each.empty for each in rules) else rules
        if not isinstance(method, MinimumRisk):
            return self.engine.search(
                rows, config=config, method=method, n_best=options.n_best, rules=given
            )
        drawn = self.engine.search(
            rows, config=config, method=method.sampling, n_best=method.samples, rules=given
        )
        return [self._least_risk(samples)[: options.n_best] for samples in drawn]

    def _least_risk(self, drawn: list["Hypothesis"]) -> list["Hypothesis"]:
        """The different samples of a sentence by expected chrF, which is then their score."""
        texts = [one_line(self.tokenizer.decode(hypothesis.ids)) for hypothesis in drawn]
        from kakehashi.evaluation.chrf import pairwise_chrf

        ranked = by_expected_utility(texts, pairwise_chrf)
        return [replace(drawn[each.first], score=each.utility) for each in ranked]

    def _follow(
        self, rows: Sequence[tuple[int, ...]], found: list[list["Hypothesis"]]
    ) -> list[list[Followed]]:
        """Each hypothesis read once more: what a search throws away of it."""
        sources = [row for row, some in zip(rows, found, strict=True) for _ in some]
        targets = [hypothesis.ids for some in found for hypothesis in some]
        followed = iter(self.engine.follow(sources, targets, attending=True))
        return [[next(followed) for _ in some] for some in found]

    def _translation(self, line: Line, options: Options) -> Translation:
        if not line.parts:
            return BLANK
        found = [self._candidates(line, number) for number in range(len(line.parts))]
        best = join_parts(found, options.n_best, joint(self.config.target_language))
        warnings = line.warnings(self.config.max_length)
        firsts = (line.found[number][0].ids for number in range(len(line.parts)))
        if changed := changed_symbols(chain(*line.parts), chain(*firsts), self._symbols):
            warnings += (f"line {line.number}: the translation {changed}",)
        if missing := self._missing(line):
            warnings += (f"line {line.number}: the translation {missing}",)
        tokens: tuple[str, ...] = ()
        if options.details:
            tokens = tuple(chain.from_iterable(self._tokens(row) for row in line.parts))
        first = best[0]
        return Translation(first.text, first.score, best, warnings, tokens, line.seconds)

    def _missing(self, line: Line) -> str:
        """What is not in a translation though it was required; such lines are in one part."""
        said = line.found[0][0].ids
        phrases = [self.tokenizer.decode(phrase) for phrase in line.rules.missing(said)]
        if not phrases:
            return ""
        return f"lacks the required {', '.join(map(repr, phrases))}: there was no room for it"

    def _candidates(self, line: Line, number: int) -> list[Candidate]:
        """The n-best list of a part."""
        made = []
        start = sum(len(row) + 1 for row in line.parts[:number])
        sources = self._source_words(line, number) if line.read[number] else []
        for at, hypothesis in enumerate(line.found[number]):
            text = one_line(self.tokenizer.decode(hypothesis.ids))
            told: tuple[tuple[str, ...], tuple[float, ...], Pairs, Pairs] = ((), (), (), ())
            if line.read[number]:
                followed = line.read[number][at]
                end = len(hypothesis.ids) + hypothesis.finished
                pairs = _pairs(followed)
                told = (
                    self._tokens(hypothesis.ids)[:end],
                    followed.log_probabilities[:end],
                    tuple((start + i, j) for i, j in pairs),
                    word_alignment(pairs, sources, self._written_words(hypothesis.ids)),
                )
            made.append(Candidate(text, hypothesis.score, hypothesis.log_probability, *told))
        return made

    def _source_words(self, line: Line, number: int) -> list[tuple[int, ...]]:
        """The words of the line that each piece of one of its parts is in."""
        words, at = line_words(line.text), 0
        for part in line.texts[:number]:
            at = line.text.index(part, at) + len(part)
        at = line.text.index(line.texts[number], at)
        spans = self.tokenizer.encode_spans(line.texts[number])
        return piece_words(self.tokenizer.pieces(line.parts[number]), spans, words[at:])

    def _written_words(self, ids: Sequence[int]) -> list[tuple[int, ...]]:
        """The words of its translation that each piece is in."""
        words = written_words(self.tokenizer.decode(ids))
        return piece_words(self.tokenizer.pieces(ids), self.tokenizer.decode_spans(ids), words)

    def _tokens(self, row: Sequence[int]) -> tuple[str, ...]:
        return tuple(self.tokenizer.pieces([*row, EOS]))

    def score(
        self, pairs: Iterable[tuple[str, str]], batch_size: int | None = None
    ) -> Iterator[Scored]:
        """How probable the model finds each given translation of a source line, in order.

        Forced decoding: the translation is read from left to right, each piece with its probability
        given the source and the pieces before it. Nothing is cut; a blank side is a side without
        pieces, and two blank sides have log probability 0.

        Args:
            pairs: source line, translation.
            batch_size: pairs read together at most. None: as the model says.

        Raises:
            ConfigError: for a batch size below 1.
            DataError: whatever ``pairs`` raises, after the pairs before it have been scored.
        """
        size = Options(batch_size=batch_size).search(self.config.decoding).batch_size
        return (scored for *_, scored in scored_pairs(self.engine, self.tokenizer, pairs, size))

    def score_tokens(
        self,
        pairs: Iterable[tuple[Sequence[str], Sequence[str]]],
        batch_size: int | None = None,
    ) -> Iterator[Scored]:
        """The same of a line's and a translation's pieces, as ``details`` tell them.

        A text can be cut into pieces in many ways, and a search may come upon another one than the
        tokenizer would choose. What a translation was scored with is found again from its pieces.

        Args:
            pairs: ``Translation.source_tokens``, ``Candidate.tokens``.
            batch_size: as above.

        Raises:
            TokenizerError: for a piece that the vocabulary lacks.
            DataError: for a line and a translation of unequally many parts.
        """
        size = Options(batch_size=batch_size).search(self.config.decoding).batch_size
        return scored_tokens(self.engine, self.tokenizer, pairs, size)

    def align(
        self, pairs: Iterable[tuple[str, str]], batch_size: int | None = None
    ) -> Iterator[Aligned]:
        """Which words of a line and of a given translation stand for each other, in order.

        Args and Raises: as for ``score``.
        """
        size = Options(batch_size=batch_size).search(self.config.decoding).batch_size
        read = scored_pairs(self.engine, self.tokenizer, pairs, size)
        return (aligned(self.tokenizer, *one) for one in read)


def _pairs(followed: Followed) -> Pairs:
    assert followed.attention is not None  # asked for
    return piece_alignment(followed.attention)
