"""Translating lines of text with a finished model."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
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
from kakehashi.inference.symbols import changed_symbols
from kakehashi.models.interface import AttentionMaps
from kakehashi.symbols import BOS, EOS

WINDOW = 32
"""Batches read ahead, so that sentences of like length can be decoded together."""

_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Translation:
    """What became of one line."""

    text: str
    score: float
    """``log p / length ** length_penalty`` of the best hypothesis; 0 for a blank line."""
    hypotheses: tuple[tuple[str, float], ...]
    """The n-best list, best first: texts and scores; the first is ``text`` and ``score``."""
    warnings: tuple[str, ...] = ()
    """What the reader should know: a line longer than the model's training, a cut translation."""


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
        asked for. A line without visible characters comes out empty, without being decoded. A
        translation is one line: line breaks that a model writes become spaces.

        Args:
            lines: source text, one sentence (or what the model was trained on) a line.
            beam: hypotheses kept for each sentence; 1 is greedy. None: as the model says.
            length_penalty: see ``DecodingConfig``. None: as the model says.
            n_best: hypotheses to return for each line, at most ``beam``.
            batch_size: sentences decoded together at most. None: as the model says.

        Raises:
            ConfigError: for a setting out of range.
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
            yield from self._window(window, first, config, n_best)
            first += len(window)

    def _window(
        self, lines: list[str], first: int, config: DecodingConfig, n_best: int
    ) -> list[Translation]:
        translations = [Translation("", 0.0, (("", 0.0),))] * len(lines)
        visible = [place for place, line in enumerate(lines) if not is_blank(line)]
        pieces = self.tokenizer.encode_batch([lines[place] for place in visible])
        lengths = [len(row) + 1 for row in pieces]
        for batch in length_batches(lengths, config.batch_size):
            found = self._search([pieces[index] for index in batch], config, n_best)
            for index, hypotheses in zip(batch, found, strict=True):
                place = visible[index]
                warnings = self._warnings(first + place, pieces[index], hypotheses)
                translations[place] = self._translation(hypotheses, warnings)
        return translations

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

    def _translation(
        self, hypotheses: Sequence[Hypothesis], warnings: tuple[str, ...]
    ) -> Translation:
        best = tuple((_one_line(self.tokenizer.decode(h.ids)), h.score) for h in hypotheses)
        return Translation(*best[0], best, warnings)

    def _warnings(
        self, line: int, pieces: Sequence[int], hypotheses: Sequence[Hypothesis]
    ) -> tuple[str, ...]:
        warnings, length = [], len(pieces) + 1
        if length > self.config.max_length:
            warnings.append(
                f"line {line} has {length:,} pieces, the model was trained on at most "
                f"{self.config.max_length:,}: it was translated whole, but expect less of it than "
                "of shorter lines"
            )
        if not hypotheses[0].finished:
            warnings.append(
                f"line {line}: the translation did not come to an end and was cut after "
                f"{len(hypotheses[0].ids):,} pieces"
            )
        if changed := changed_symbols(pieces, hypotheses[0].ids, self._symbols):
            warnings.append(f"line {line}: the translation {changed}")
        return tuple(warnings)

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


def _one_line(text: str) -> str:
    """The text on one line: no break of any kind, no control character, no mark for a space."""
    return _CONTROL.sub("", " ".join(text.replace("\u2581", " ").splitlines()))
