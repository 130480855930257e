"""Text to piece numbers and back: one SentencePiece model for both languages.

Kudo and Richardson (2018), SentencePiece. With identity normalisation and byte fallback,
``decode(encode(text)) == text`` for every text with two exceptions: U+2581, SentencePiece's own
mark for a space, comes back as a space, and a lone surrogate, which UTF-8 cannot write, comes
back as U+FFFD.
"""

import hashlib
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

import sentencepiece

from kakehashi.data.reading import write_bytes
from kakehashi.errors import TokenizerError
from kakehashi.symbols import BOS, EOS, PAD, UNK

_SURROGATE = re.compile("[\ud800-\udfff]")
_TOO_LARGE = re.compile(r"Vocabulary size too high \(\d+\)\. Please set it to a value <= (\d+)")
_TOO_SMALL = re.compile(r"Vocabulary size is smaller than required_chars\. \d+ vs (\d+)")
_CONTROLS = frozenset((PAD, BOS, EOS))


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
    ) -> Self:
        """Train on the lines of both languages; the same lines give the same bytes.

        Raises TokenizerError when the text doesn't allow `vocab_size`, naming the bound.
        """
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=map(_writable, lines),
                model_writer=model,
                vocab_size=vocab_size,
                model_type=kind,
                character_coverage=character_coverage,
                byte_fallback=byte_fallback,
                normalization_rule_name=normalization,
                # Spaces are text: without this, runs of them and those at the ends are lost.
                remove_extra_whitespaces=normalization != "identity",
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
    def fingerprint(self) -> str:
        """The SHA-256 of the model's bytes, in hexadecimal."""
        return hashlib.sha256(self._model).hexdigest()

    def encode(self, text: str) -> list[int]:
        """The text's piece numbers, without BOS and EOS."""
        ids: list[int] = self._processor.encode(_writable(text))
        return ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of each text, on all cores."""
        ids: list[list[int]] = self._processor.encode([_writable(text) for text in texts])
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of the pieces; PAD, BOS and EOS are left out.

        Raises TokenizerError for a number outside the vocabulary.
        """
        kept = [int(i) for i in ids if i not in _CONTROLS]
        self._check(kept)
        return str(self._processor.decode(kept)) if kept else ""

    def decode_batch(self, ids: Iterable[Sequence[int]]) -> list[str]:
        """`decode` of each row."""
        return [self.decode(row) for row in ids]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces as SentencePiece writes them: U+2581 for a space, <0xE2> for a byte."""
        rows = [int(i) for i in ids]
        self._check(rows)
        return [str(self._processor.id_to_piece(i)) for i in rows]

    def _check(self, ids: list[int]) -> None:
        if ids and not (min(ids) >= 0 and max(ids) < self.vocab_size):
            raise TokenizerError(
                f"piece numbers {min(ids)} to {max(ids)} for a vocabulary of {self.vocab_size}: "
                "this is another tokenizer's text"
            )


def _writable(text: str) -> str:
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


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
