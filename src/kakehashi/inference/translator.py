"""Translating lines of text with a finished model."""

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.decoding.hypothesis import Hypothesis
from kakehashi.decoding.rules import Rules
from kakehashi.errors import ConfigError
from kakehashi.inference.answers import Writer
from kakehashi.inference.batches import WINDOW, length_batches, windows
from kakehashi.inference.engine import Engine, Followed
from kakehashi.inference.finding import found_for, read_again
from kakehashi.inference.lines import Line, Reader
from kakehashi.inference.options import Options
from kakehashi.inference.request import Request
from kakehashi.inference.scoring import (
    Aligned,
    Scored,
    aligned,
    scored_pairs,
    scored_tokens,
    word_attention,
)
from kakehashi.inference.settings import BundleConfig
from kakehashi.inference.translation import Translation
from kakehashi.models.alignment import AlignmentChoice
from kakehashi.models.config import attentions

if TYPE_CHECKING:
    from kakehashi.inference.bundle import Bundle

Key = tuple[tuple[int, ...], Rules]
"""A part of a line in pieces, and what its translation has to keep to."""


class Translator:
    """A finished model with everything needed to translate lines of text.

    A line is translated as if it were alone: order, count and neighbours of the lines change
    nothing (scores within 1e-4, the room that floating point takes).
    """

    def __init__(self, engine: Engine, tokenizer: Tokenizer, config: BundleConfig) -> None:
        self.engine = engine
        self.tokenizer = tokenizer
        self.config = config

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

    def read_alignments_from(self, choice: AlignmentChoice) -> None:
        """Read alignments off another attention than the model's folder says, from now on.

        Raises:
            ConfigError: for a layer or a head that the model does not have, for several models,
                and for an engine whose one attention was chosen when the model was exported.
        """
        from kakehashi.inference.torch_engine import TorchEngine

        if not isinstance(self.engine, TorchEngine):
            raise ConfigError(
                f"the {self.engine.name} engine shows one attention, chosen when the model was "
                "exported: use --engine torch to choose another"
            )
        if self.engine.together:
            raise ConfigError(
                "several models have no layers and heads in common: choose those of one at a time"
            )
        choice.check(*attentions(self.config.model))
        self.engine.model.alignment = choice

    def alignment_choice(self) -> AlignmentChoice:
        """Which attention alignments are read off."""
        from kakehashi.inference.torch_engine import TorchEngine

        if isinstance(self.engine, TorchEngine):
            return self.engine.model.alignment
        return self.config.alignment

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
        longer than any sentence of the model's training is translated sentence by sentence, and a
        warning says so; a sentence that is too long is cut further. A line whose translation has a
        prefix or required phrases is translated whole. A translation is one line: line breaks that
        a model writes become spaces.

        Args:
            lines: source text, one sentence (or what the model was trained on) a line; a
                ``Request`` is a line with rules for its translation.
            options: how; None: as the model says.

        Raises:
            ConfigError: for an option out of range, or one that this model has no use for.
            DataError: whatever ``lines`` raises, after the lines before it have been translated.
        """
        if isinstance(lines, str):
            raise TypeError("lines must be a list of lines, not one text: use [text]")
        options = options or Options()
        config = options.search(self.config.decoding)
        if options.copy_unknown and self.tokenizer.spells_all:
            raise ConfigError(
                "there is nothing to copy: this model's tokenizer spells every character "
                "(byte_fallback), so none is unknown to it"
            )
        return self._windows(lines, config, options)

    def _windows(
        self, lines: Iterable[str | Request], config: DecodingConfig, options: Options
    ) -> Iterator[Translation]:
        size = 1 if config.batch_size == 1 else WINDOW * config.batch_size
        reader = Reader(self.tokenizer, self.config, options)
        first = 1
        for window in windows(lines, size):
            yield from self._window(reader.read(window, first), config, options)
            first += len(window)

    def _window(
        self, lines: list[Line], config: DecodingConfig, options: Options
    ) -> Iterator[Translation]:
        """Decode the parts of all lines by length; each line comes out once those before it have.

        A long line, decoded last, does not hold up those before it. Equal parts are decoded once.
        """
        writer = Writer(self.tokenizer, self.config, options)
        places: dict[Key, list[tuple[Line, int]]] = {}
        for line in lines:
            for number, part in enumerate(line.parts):
                places.setdefault((part.row, part.rules), []).append((line, number))
        keys = list(places)
        lengths = [len(row) + 1 for row, _ in keys]
        batches = [
            {keys[index]: places[keys[index]] for index in batch}
            for batch in length_batches(lengths, config.batch_size)
        ]
        decode = partial(self._decode, writer, config, options)
        waiting = deque(lines)
        for batch, (found, read, seconds) in zip(
            batches, self.engine.each(decode, batches), strict=True
        ):
            for where, hypotheses, followed in zip(batch.values(), found, read, strict=True):
                for line, number in where:
                    line.found[number], line.read[number] = hypotheses, followed
                    line.seconds += seconds / len(batch)
            while waiting and waiting[0].done:
                yield writer.translation(waiting.popleft())
        for line in waiting:  # nothing but blank lines
            yield writer.translation(line)

    def _decode(
        self,
        writer: Writer,
        config: DecodingConfig,
        options: Options,
        batch: dict[Key, list[tuple[Line, int]]],
    ) -> tuple[list[list[Hypothesis]], list[list[Followed]], float]:
        """What is found for parts of lines, what is read of it once more, and the seconds it took.

        Several threads may be in here at once, and none of them changes a line.
        """
        start = time.perf_counter()
        found = found_for(self.engine, self.tokenizer, list(batch), config, options)
        looked = [
            hypotheses if writer.looks([line for line, _ in where], hypotheses) else []
            for where, hypotheses in zip(batch.values(), found, strict=True)
        ]
        read = read_again(self.engine, [row for row, _ in batch], looked, config.batch_size)
        return found, read, time.perf_counter() - start

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

    def word_attention(
        self, pairs: Iterable[tuple[str, str]], batch_size: int | None = None
    ) -> Iterator[npt.NDArray[np.float16]]:
        """How much each word of a given translation attends to each of its line: [N, M], in order.

        It is the attention that alignments are read off; see ``refinement.refine``.

        Args and Raises: as for ``score``.
        """
        size = Options(batch_size=batch_size).search(self.config.decoding).batch_size
        return word_attention(self.engine, self.tokenizer, pairs, size)
