"""Translating lines of text with a finished model."""

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import exp, fsum
from pathlib import Path
from typing import TYPE_CHECKING, Self

from kakehashi.data.reading import is_blank
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.decoding.mbr import by_expected_utility
from kakehashi.decoding.rules import Rules
from kakehashi.evaluation.chrf import pairwise_chrf
from kakehashi.inference.alignment import Pairs, piece_alignment
from kakehashi.inference.batches import length_batches, windows
from kakehashi.inference.engine import Engine, Followed
from kakehashi.inference.options import MinimumRisk, Options
from kakehashi.inference.parts import joint, parts
from kakehashi.inference.request import Request
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

WINDOW = 32
"""Batches read ahead, so that sentences of like length can be decoded together."""


@dataclass(frozen=True)
class Scored:
    """How probable a model finds a translation that it was given."""

    tokens: tuple[str, ...]
    """The pieces of the translation, EOS last."""
    token_log_probabilities: tuple[float, ...]
    """Of each piece given the source and the pieces before it; natural logarithm."""
    source_tokens: tuple[str, ...]
    """The pieces of the source, EOS last."""
    alignment: Pairs
    """Source token, token: see ``piece_alignment``."""

    @property
    def log_probability(self) -> float:
        """Of the whole translation, EOS included."""
        return fsum(self.token_log_probabilities)

    @property
    def perplexity(self) -> float:
        """``exp(-log p / pieces)``, EOS counted."""
        return exp(-self.log_probability / len(self.token_log_probabilities))


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
    def load(cls, path: str | Path | Sequence[str | Path], device: str | None = None) -> Self:
        """From a model folder or a run folder; from several, which then translate as one.

        At every step an ensemble takes the mean of what its models expect. They must share the
        tokenizer; the search is that of the first.

        Args:
            path: the folder, or several.
            device: cpu (the default), cuda, or auto: the GPU if there is one.

        Raises:
            BundleError: when a folder cannot be used, or the models do not go together.
            ConfigError: when the device cannot.
        """
        from kakehashi.inference.bundle import load_bundle
        from kakehashi.inference.device import choose_device

        paths = [path] if isinstance(path, str | Path) else path
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
            pieces = [] if is_blank(line) else [row]
            if pieces and rules.empty and not self._fits(row):
                cut = parts(line, lambda part: self._fits(self.tokenizer.encode(part)))
                pieces = self.tokenizer.encode_batch(list(cut))
            read.append(Line(number, len(row) + 1, pieces, rules))
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
        tokens: tuple[str, ...] = ()
        if options.details:
            tokens = tuple(chain.from_iterable(self._tokens(row) for row in line.parts))
        first = best[0]
        return Translation(first.text, first.score, best, warnings, tokens, line.seconds)

    def _candidates(self, line: Line, number: int) -> list[Candidate]:
        """The n-best list of a part."""
        made = []
        start = sum(len(row) + 1 for row in line.parts[:number])
        for at, hypothesis in enumerate(line.found[number]):
            text = one_line(self.tokenizer.decode(hypothesis.ids))
            told: tuple[tuple[str, ...], tuple[float, ...], Pairs] = ((), (), ())
            if line.read[number]:
                followed = line.read[number][at]
                end = len(hypothesis.ids) + hypothesis.finished
                told = (
                    self._tokens(hypothesis.ids)[:end],
                    followed.log_probabilities[:end],
                    tuple((start + i, j) for i, j in _pairs(followed)),
                )
            made.append(Candidate(text, hypothesis.score, hypothesis.log_probability, *told))
        return made

    def _tokens(self, row: Sequence[int]) -> tuple[str, ...]:
        return tuple(self.tokenizer.pieces([*row, EOS]))

    def score(
        self, pairs: Iterable[tuple[str, str]], batch_size: int | None = None
    ) -> Iterator[Scored]:
        """How probable the model finds each given translation of a source line, in order.

        Forced decoding: the translation is read from left to right, each piece with its probability
        given the source and the pieces before it. Nothing is cut; a blank side is a side without
        pieces.

        Args:
            pairs: source line, translation.
            batch_size: pairs read together at most. None: as the model says.

        Raises:
            ConfigError: for a batch size below 1.
            DataError: whatever ``pairs`` raises, after the pairs before it have been scored.
        """
        size = Options(batch_size=batch_size).search(self.config.decoding).batch_size
        return self._score(pairs, size)

    def _score(self, pairs: Iterable[tuple[str, str]], size: int) -> Iterator[Scored]:
        for window in windows(pairs, 1 if size == 1 else WINDOW * size):
            rows = self.tokenizer.encode_batch([source for source, _ in window])
            targets = self.tokenizer.encode_batch([target for _, target in window])
            lengths = [max(len(r), len(t)) + 1 for r, t in zip(rows, targets, strict=True)]
            found: dict[int, Followed] = {}
            for batch in length_batches(lengths, size):
                chosen = [rows[i] for i in batch], [targets[i] for i in batch]
                found |= zip(batch, self.engine.follow(*chosen, attending=True), strict=True)
            for at, (row, target) in enumerate(zip(rows, targets, strict=True)):
                yield Scored(
                    self._tokens(target),
                    found[at].log_probabilities,
                    self._tokens(row),
                    _pairs(found[at]),
                )


def _pairs(followed: Followed) -> Pairs:
    assert followed.attention is not None  # asked for
    return piece_alignment(followed.attention)
