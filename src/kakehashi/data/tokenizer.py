"""Text to piece numbers and back: one SentencePiece model for both languages.

Kudo and Richardson (2018), SentencePiece. With identity normalisation and byte fallback,
``decode(encode(text)) == text`` for every text that UTF-8 can write; a lone surrogate, which it
cannot, comes back as U+FFFD. SentencePiece alone would turn U+2581, its mark for a space, into a
space: it is spelled with an escape here, U+FDD0 and a letter, and so is U+FDD0 itself.
"""

import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import sentencepiece

from kakehashi.data.reading import write_bytes
from kakehashi.errors import TokenizerError
from kakehashi.symbols import BOS, EOS, PAD, UNK

SPACE = "\u2581"
"""SentencePiece's mark for a space."""
ESCAPE = "\ufdd0"
"""A code point that Unicode reserves for uses like this, and never for text."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED = re.compile(f"{ESCAPE}([se])")
_TOO_LARGE = re.compile(r"Vocabulary size too high \(\d+\)\. Please set it to a value <= (\d+)")
_TOO_SMALL = re.compile(r"Vocabulary size is smaller than required_chars\. \d+ vs (\d+)")
_CONTROLS = frozenset((PAD, BOS, EOS))
Span = tuple[int, int]
"""From this character up to that one."""
_LONGEST = 4192
"""Bytes of a line that SentencePiece trains on; it passes over longer ones without a word. Another
limit would stand in the model, and make other bytes of every tokenizer."""


class TokenizerSettings(NamedTuple):
    """How a tokenizer was made."""

    kind: str
    """unigram or bpe."""
    normalization: str
    symbols: tuple[str, ...]


class Tokenizer:
    """A trained SentencePiece model whose first four pieces are <pad>, <unk>, <s>, </s>.

    Those four written in a text (`</s>`) are ordinary text: `encode` never returns their numbers.
    """

    def __init__(self, model: bytes, name: str = "the tokenizer model") -> None:
        """Raises TokenizerError when `model` isn't one, or has other reserved pieces."""
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
            reserved = tuple(
                getattr(self._processor, f"{piece}_id")() for piece in ("pad", "unk", "bos", "eos")
            )
        except (RuntimeError, TypeError) as error:
            raise TokenizerError(f"{name} is not a SentencePiece model, or is damaged") from error
        if reserved != (PAD, UNK, BOS, EOS):
            raise TokenizerError(
                f"{name} numbers pad, unk, bos, eos {reserved}; Kakehashi's tokenizers have "
                f"{(PAD, UNK, BOS, EOS)}"
            )
        self._model = model
        self._escapes = bool(self._processor.is_byte(self._processor.piece_to_id("<0xEF>")))

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        *,
        vocab_size: int,
        kind: str = "unigram",
        normalization: str = "identity",
        character_coverage: float = 0.9995,
        byte_fallback: bool = True,
        symbols: Sequence[str] = (),
    ) -> Self:
        """Train on the lines of both languages; the same lines give the same bytes.

        Each of `symbols` is a piece of its own wherever it occurs in a text, never split nor
        joined with its neighbours (the longest where several fit), whatever the normalisation.

        Raises TokenizerError when the text doesn't allow `vocab_size`, naming the bound.
        """
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=(
                    part for line in lines for part in _parts(writable(line, byte_fallback))
                ),
                model_writer=model,
                vocab_size=vocab_size,
                model_type=kind,
                character_coverage=character_coverage,
                byte_fallback=byte_fallback,
                normalization_rule_name=normalization,
                # Spaces are text: without this, runs of them and those at the ends are lost.
                remove_extra_whitespaces=normalization != "identity",
                user_defined_symbols=list(symbols),
                pad_id=PAD,
                unk_id=UNK,
                bos_id=BOS,
                eos_id=EOS,
                # The pieces of a unigram model depend on the number of threads.
                num_threads=1,
                minloglevel=2,
            )
        except RuntimeError as error:
            raise TokenizerError(_training_failure(str(error), vocab_size)) from error
        return cls(model.getvalue())

    @classmethod
    def from_bytes(cls, model: bytes) -> Self:
        """Rebuild from `to_bytes`; raises TokenizerError for other bytes."""
        return cls(model)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model file; raises TokenizerError when it is missing or damaged."""
        try:
            model = Path(path).read_bytes()
        except OSError as error:
            raise TokenizerError(f"cannot read the tokenizer {path}: {error.strerror}") from error
        return cls(model, str(path))

    def to_bytes(self) -> bytes:
        """The SentencePiece model, as it stands in a file."""
        return self._model

    def save(self, path: str | Path) -> None:
        """Write the model file, whole or not at all."""
        write_bytes(path, self._model)

    @property
    def vocab_size(self) -> int:
        """The number of pieces V; numbers run from 0 to V - 1."""
        return int(self._processor.vocab_size())

    @property
    def spells_all(self) -> bool:
        """Whether it has a piece for every byte, so that nothing is unknown to it."""
        return self._escapes

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the model's bytes, in hexadecimal."""
        return hashlib.sha256(self._model).hexdigest()

    @cached_property
    def settings(self) -> TokenizerSettings:
        """What the model file says of its making."""
        # Made by protobuf's compiler, which type checkers cannot see into.
        description: Any = import_module("sentencepiece.sentencepiece_model_pb2")
        model = description.ModelProto.FromString(self._model)
        spec = model.trainer_spec
        kind = description.TrainerSpec.ModelType.Name(spec.model_type).lower()
        symbols = tuple(str(symbol) for symbol in spec.user_defined_symbols)
        return TokenizerSettings(kind, str(model.normalizer_spec.name), symbols)

    def symbol_numbers(self) -> list[int]:
        """The numbers of the user-defined symbols."""
        return [self._processor.piece_to_id(symbol) for symbol in self.settings.symbols]

    def ordinary_pieces(self) -> list[int]:
        """The numbers of all pieces but the reserved ones, the bytes and the symbols."""
        model = self._processor
        symbols = set(self.symbol_numbers())
        tests = (model.is_control, model.is_unknown, model.is_byte, symbols.__contains__)
        return [i for i in range(self.vocab_size) if not any(test(i) for test in tests)]

    def scores(self) -> npt.NDArray[np.float64]:
        """Each piece's score [V]: a log probability (unigram), or falling in order of merging."""
        return np.array([self._processor.get_score(i) for i in range(self.vocab_size)])

    def encode(self, text: str) -> list[int]:
        """The text's piece numbers, without BOS and EOS."""
        ids: list[int] = self._processor.encode(writable(text, self._escapes))
        return ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of each text, on all cores."""
        ids: list[list[int]] = self._processor.encode(
            [writable(text, self._escapes) for text in texts]
        )
        return ids

    def encode_spans(self, text: str) -> list[Span]:
        """Where in the text each piece of `encode(text)` stands.

        A piece that makes up a character together with others (a byte, a part of what
        normalisation makes of one) has the place of that character; all of them but the last, and
        the mark for a space that is put ahead of a text, are of no width.
        """
        escaped = writable(text, self._escapes)
        found = self._processor.encode(escaped, out_type="offset_mapping")
        return _unescaped(found["offsets"], escaped if len(escaped) > len(text) else "", len(text))

    def decode_spans(self, ids: Sequence[int]) -> list[Span]:
        """Where in `decode(ids)` each of the pieces stands, none of them PAD, BOS or EOS."""
        if not ids:
            return []
        found = self._processor.decode([int(i) for i in ids], out_type="offset_mapping")
        text = str(found["text"])
        return _unescaped(found["offsets"], text, len(_unescape(text)))

    def normalise(self, texts: Sequence[str]) -> list[str]:
        """Each text as the pieces spell it, after the model's normalisation."""
        spelt = self._processor.normalize([writable(text, self._escapes) for text in texts])
        return [readable(text) for text in spelt]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the pieces; PAD, BOS and EOS are left out.

        Raises TokenizerError for a number outside the vocabulary.
        """
        kept = [int(i) for i in ids if i not in _CONTROLS]
        self._check(kept)
        text = str(self._processor.decode(kept)) if kept else ""
        return _unescape(text)

    def decode_batch(self, ids: Iterable[Sequence[int]]) -> list[str]:
        """`decode` of each row."""
        return [self.decode(row) for row in ids]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces as SentencePiece writes them: U+2581 for a space, <0xE2> for a byte."""
        rows = [int(i) for i in ids]
        self._check(rows)
        return [str(self._processor.id_to_piece(i)) for i in rows]

    def numbers(self, pieces: Sequence[str]) -> list[int]:
        """The numbers of pieces, as `pieces` writes them.

        Raises TokenizerError for one that the vocabulary lacks.
        """
        ids = [int(self._processor.piece_to_id(piece)) for piece in pieces]
        for piece, number in zip(pieces, ids, strict=True):
            if number == UNK and piece != self._processor.id_to_piece(UNK):
                raise TokenizerError(f"the vocabulary has no piece {piece!r}")
        return ids

    def _check(self, ids: list[int]) -> None:
        if ids and not (min(ids) >= 0 and max(ids) < self.vocab_size):
            raise TokenizerError(
                f"piece numbers {min(ids)} to {max(ids)} for a vocabulary of {self.vocab_size}: "
                "this is another tokenizer's text"
            )


def writable(text: str, escape: bool) -> str:
    """The text as SentencePiece can take it without loss."""
    if text.isascii():
        return text
    if escape and (SPACE in text or ESCAPE in text):
        text = text.replace(ESCAPE, f"{ESCAPE}e").replace(SPACE, f"{ESCAPE}s")
    return _SURROGATE.sub("\ufffd", text)


def _parts(line: str) -> Iterator[str]:
    """The line, or parts of it that are short enough to train on, cut at spaces if it has some."""
    if len(line.encode()) <= _LONGEST:
        yield line
        return
    start, most = 0, _LONGEST // 4
    while start < len(line):
        end = start + most
        if end < len(line):
            space = line.rfind(" ", start + 1, end + 1)
            end = end if space < 0 else space
        yield line[start:end]
        start = end + line.startswith(" ", end)


def readable(normalised: str) -> str:
    """The text that SentencePiece writes as `normalised`, with a space put ahead."""
    return _unescape(normalised.removeprefix(SPACE).replace(SPACE, " "))


def _unescape(text: str) -> str:
    if ESCAPE not in text:
        return text
    return _ESCAPED.sub(lambda found: SPACE if found[1] == "s" else ESCAPE, text)


def _unescaped(spans: Iterable[Span], escaped: str, length: int) -> list[Span]:
    """Spans of an escaped text as those of the text, which is so long."""
    seconds = {found.end() - 1 for found in _ESCAPED.finditer(escaped)}
    if not seconds:
        return [(int(begin), int(end)) for begin, end in spans]
    steps = (at not in seconds for at in range(len(escaped)))
    places = [*list(accumulate(steps, initial=-1))[1:], length]
    return [
        (places[begin], places[end - 1] + 1 if end > begin else places[begin])
        for begin, end in spans
    ]


def _training_failure(message: str, vocab_size: int) -> str:
    if found := _TOO_LARGE.search(message):
        return (
            f"tokenizer.vocab_size={vocab_size} is more than this training text allows; "
            f"the largest that works is {found[1]}"
        )
    if found := _TOO_SMALL.search(message):
        return (
            f"tokenizer.vocab_size={vocab_size} is less than this training text's characters "
            f"need; the smallest that works is {found[1]} (a lower "
            "tokenizer.character_coverage needs fewer)"
        )
    if "sentences_.empty()" in message:
        return "there is no training text for the tokenizer: every line is blank"
    return f"SentencePiece could not train the tokenizer: {message}"
