"""Translating lines of text with a finished model."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Self

import torch

from kakehashi.data.reading import is_blank
from kakehashi.decoding.beam import beam_search
from kakehashi.decoding.config import DecodingConfig
from kakehashi.decoding.greedy import greedy_search
from kakehashi.decoding.hypothesis import Hypothesis, max_lengths
from kakehashi.errors import ConfigError
from kakehashi.inference.batches import length_batches, source_tensors, windows
from kakehashi.inference.bundle import Bundle, load_bundle
from kakehashi.inference.device import choose_device
from kakehashi.inference.parts import joint, parts
from kakehashi.inference.symbols import changed_symbols
from kakehashi.inference.translation import Line, Translation, join_parts, one_line
from kakehashi.models.interface import AttentionMaps
from kakehashi.symbols import BOS, EOS

WINDOW = 32
"""Batches read ahead, so that sentences of like length can be decoded together."""


@dataclass(frozen=True)
class Attention:
    """How a model attends while it writes one translation."""

    maps: AttentionMaps
    """Of one sentence: B = 1. Row n is the step that reads ``target_input[n]`` and writes
    ``target_output[n]``."""
    source: tuple[str, ...]
    """Pieces of the line, EOS last."""
    target_input: tuple[str, ...]
    """BOS, then the pieces of the translation."""
    target_output: tuple[str, ...]
    """The pieces of the translation, EOS last."""


class Translator:
    """A finished model with everything needed to translate lines of text.

    A line is translated as if it were alone: order, count and neighbours of the lines change
    nothing (scores within 1e-4, the room that floating point takes).
    """

    def __init__(self, bundle: Bundle) -> None:
        self.model = bundle.model
        self.tokenizer = bundle.tokenizer
        self.config = bundle.config
        self.device = next(bundle.model.parameters()).device
        symbols = bundle.tokenizer.settings.symbols
        self._symbols = dict(zip(bundle.tokenizer.symbol_numbers(), symbols, strict=True))

    @classmethod
    def load(cls, path: str | Path, device: str | None = None) -> Self:
        """From a model folder or a run folder.

        Args:
            path: the folder.
            device: cpu (the default), cuda, or auto: the GPU if there is one.

        Raises:
            BundleError: when the folder cannot be used.
            ConfigError: when the device cannot.
        """
        return cls(load_bundle(path, choose_device(device)))

    def translate(
        self,
        lines: Sequence[str],
        *,
        beam: int | None = None,
        length_penalty: float | None = None,
        n_best: int = 1,
        batch_size: int | None = None,
    ) -> list[Translation]:
        """One translation a line, in order; see ``stream``."""
        return list(
            self.stream(
                lines,
                beam=beam,
                length_penalty=length_penalty,
                n_best=n_best,
                batch_size=batch_size,
            )
        )

    def stream(
        self,
        lines: Iterable[str],
        *,
        beam: int | None = None,
        length_penalty: float | None = None,
        n_best: int = 1,
        batch_size: int | None = None,
    ) -> Iterator[Translation]:
        """Translate lines as they come, in order, reading 32 batches ahead.

        With a batch size of 1 nothing is read ahead: every line is answered before the next is
        asked for. A line without visible characters comes out empty, without being decoded. A line
        longer than any sentence of the model's training is cut into parts, near sentence ends where
        it has some; each is translated by itself, and a warning says so. A translation is one
        line: line breaks that a model writes become spaces.

        Args:
            lines: source text, one sentence (or what the model was trained on) a line.
            beam: hypotheses kept for each sentence; 1 is greedy. None: as the model says.
            length_penalty: see ``DecodingConfig``. None: as the model says.
            n_best: hypotheses to return for each line, at most ``beam``.
            batch_size: sentences decoded together at most. None: as the model says.

        Raises:
            ConfigError: for a setting out of range.
            DataError: whatever ``lines`` raises, after the lines before it have been translated.
        """
        if isinstance(lines, str):
            raise TypeError("lines must be a list of lines, not one text: use [text]")
        default = self.config.decoding
        config = replace(
            default,
            beam=default.beam if beam is None else beam,
            length_penalty=default.length_penalty if length_penalty is None else length_penalty,
            batch_size=default.batch_size if batch_size is None else batch_size,
        )
        if not 1 <= n_best <= config.beam:
            raise ConfigError(
                f"an n-best list of {n_best} needs a beam of at least that; the beam is "
                f"{config.beam}"
            )
        return self._windows(lines, config, n_best)

    def _windows(
        self, lines: Iterable[str], config: DecodingConfig, n_best: int
    ) -> Iterator[Translation]:
        size = 1 if config.batch_size == 1 else WINDOW * config.batch_size
        first = 1
        for window in windows(lines, size):
            yield from self._window(self._read(window, first), config, n_best)
            first += len(window)

    def _read(self, lines: list[str], first: int) -> list[Line]:
        """Pieces of each line; a line longer than the model's training in parts."""
        read = []
        for number, (line, row) in enumerate(
            zip(lines, self.tokenizer.encode_batch(lines), strict=True), first
        ):
            rows = [] if is_blank(line) else [row]
            if rows and not self._fits(row):
                whole = parts(line, lambda part: self._fits(self.tokenizer.encode(part)))
                rows = self.tokenizer.encode_batch(list(whole))
            read.append(Line(number, len(row) + 1, rows))
        return read

    def _fits(self, row: Sequence[int]) -> bool:
        return len(row) + 1 <= self.config.max_length

    def _window(
        self, lines: list[Line], config: DecodingConfig, n_best: int
    ) -> Iterator[Translation]:
        """Decode the parts of all lines by length; each line comes out once those before it have.

        A long line, decoded last, does not hold up those before it. Equal parts are decoded once.
        """
        places: dict[tuple[int, ...], list[tuple[Line, int]]] = {}
        for line in lines:
            for number, row in enumerate(line.parts):
                places.setdefault(tuple(row), []).append((line, number))
        rows = list(places)
        waiting = deque(lines)
        for batch in length_batches([len(row) + 1 for row in rows], config.batch_size):
            found = self._search([rows[index] for index in batch], config, n_best)
            for index, hypotheses in zip(batch, found, strict=True):
                for line, number in places[rows[index]]:
                    line.found[number] = hypotheses
            while waiting and waiting[0].done:
                yield self._translation(waiting.popleft(), n_best)
        for line in waiting:  # nothing but blank lines
            yield self._translation(line, n_best)

    def _search(
        self, rows: Sequence[Sequence[int]], config: DecodingConfig, n_best: int
    ) -> list[list[Hypothesis]]:
        source, allowed = source_tensors(rows, self.device)
        limits = max_lengths(allowed, config)
        with torch.inference_mode():
            encoded = self.model.encode(source, allowed)
        if config.beam == 1:
            return greedy_search(
                self.model, encoded, max_lengths=limits, length_penalty=config.length_penalty
            )
        return beam_search(
            self.model,
            encoded,
            beam=config.beam,
            max_lengths=limits,
            length_penalty=config.length_penalty,
            n_best=n_best,
        )

    def _translation(self, line: Line, n_best: int) -> Translation:
        if not line.parts:
            return Translation("", 0.0, (("", 0.0),))
        found = [line.found[number] for number in range(len(line.parts))]
        texts = [
            [(one_line(self.tokenizer.decode(h.ids)), h.score) for h in part] for part in found
        ]
        best = join_parts(texts, n_best, joint(self.config.target_language))
        warnings = line.warnings(self.config.max_length)
        read, written = chain(*line.parts), chain(*(part[0].ids for part in found))
        if changed := changed_symbols(read, written, self._symbols):
            warnings += (f"line {line.number}: the translation {changed}",)
        return Translation(*best[0], best, warnings)

    def score_tokens(self, line: str, target: str) -> tuple[tuple[str, ...], tuple[float, ...]]:
        """The pieces of a given translation, EOS last, and the log probability of each."""
        source, allowed = source_tensors([self.tokenizer.encode(line)], self.device)
        ids = self.tokenizer.encode(target)
        with torch.inference_mode():
            logits = self.model(source, allowed, torch.tensor([[BOS, *ids]], device=self.device))
            labels = torch.tensor([*ids, EOS], device=self.device)
            log_probability = logits[0].float().log_softmax(-1).gather(1, labels.unsqueeze(1))
        return tuple(self.tokenizer.pieces([*ids, EOS])), tuple(log_probability[:, 0].tolist())

    def attention(self, line: str, target: str | None = None) -> Attention:
        """Every attention weight while the model reads ``line`` and writes ``target``.

        Args:
            line: source text.
            target: the translation to follow; None: the model's own, by its default search.
        """
        source_ids = self.tokenizer.encode(line)
        if target is None:
            found = self._search([source_ids], self.config.decoding, 1)
            ids = list(found[0][0].ids)
        else:
            ids = self.tokenizer.encode(target)
        source, allowed = source_tensors([source_ids], self.device)
        with torch.inference_mode():
            maps = self.model.attention_maps(
                source, allowed, torch.tensor([[BOS, *ids]], device=self.device)
            )
        return Attention(
            maps,
            tuple(self.tokenizer.pieces([*source_ids, EOS])),
            tuple(self.tokenizer.pieces([BOS, *ids])),
            tuple(self.tokenizer.pieces([*ids, EOS])),
        )
