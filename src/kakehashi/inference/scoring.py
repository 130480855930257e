"""Reading translations that are given: how probable a model finds them, what it aligns."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, fsum

import numpy as np
import numpy.typing as npt

from kakehashi.data.reading import is_blank
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.errors import DataError
from kakehashi.inference.alignment import Pairs, piece_alignment, word_alignment
from kakehashi.inference.batches import WINDOW, length_batches, windows
from kakehashi.inference.engine import Engine, Followed, Row
from kakehashi.inference.line_words import line_words, piece_words
from kakehashi.symbols import EOS


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
        """``exp(-log p / pieces)``, EOS counted; 1 where there are none."""
        return exp(-self.log_probability / max(1, len(self.token_log_probabilities)))


BLANK = Scored((), (), (), ())
"""What becomes of a line without visible characters whose translation has none either."""


@dataclass(frozen=True)
class Aligned:
    """Which words of a line, and which of a translation of it, stand for each other."""

    word_alignment: Pairs
    """Source word, word: those that white space divides, from 0. See ``word_alignment``."""
    alignment: Pairs
    """Source token, token: what the words' alignment is made of."""
    source_tokens: tuple[str, ...]
    """The pieces of the source, EOS last."""
    tokens: tuple[str, ...]
    """The pieces of the translation, EOS last."""


def scored_rows(
    engine: Engine, tokenizer: Tokenizer, rows: Sequence[Row], targets: Sequence[Row], size: int
) -> list[Scored]:
    """Each translation read after its source, those of like length together, ``size`` at most."""
    found: dict[int, Scored] = {}
    for at, followed in _followed(engine, rows, targets, size):
        assert followed.attention is not None  # asked for
        found[at] = Scored(
            tuple(tokenizer.pieces([*targets[at], EOS])),
            followed.log_probabilities,
            tuple(tokenizer.pieces([*rows[at], EOS])),
            piece_alignment(followed.attention),
        )
    return [found[at] for at in range(len(rows))]


def _followed(
    engine: Engine, rows: Sequence[Row], targets: Sequence[Row], size: int
) -> Iterator[tuple[int, Followed]]:
    """Each pair's place and what is read, attention included, in batches of at most ``size``."""
    lengths = [max(len(r), len(t)) + 1 for r, t in zip(rows, targets, strict=True)]
    batches = list(length_batches(lengths, size))

    def follow(batch: list[int]) -> list[Followed]:
        some, given = [rows[i] for i in batch], [targets[i] for i in batch]
        return engine.follow(some, given, attending=True)

    for batch, read in zip(batches, engine.each(follow, batches), strict=True):
        yield from zip(batch, read, strict=True)


def scored_pairs(
    engine: Engine, tokenizer: Tokenizer, pairs: Iterable[tuple[str, str]], size: int
) -> Iterator[tuple[str, str, Scored]]:
    """Each pair of texts, and how it is scored, in order; reads a window of batches ahead.

    Nothing is cut. A line without visible characters on both sides has no pieces and log
    probability 0, as in translating; a blank side of another is a side without pieces.
    """
    for window in windows(pairs, 1 if size == 1 else WINDOW * size):
        rows = tokenizer.encode_batch([source for source, _ in window])
        targets = tokenizer.encode_batch([target for _, target in window])
        scored = scored_rows(engine, tokenizer, rows, targets, size)
        for (source, target), one in zip(window, scored, strict=True):
            yield source, target, BLANK if is_blank(source) and is_blank(target) else one


def scored_tokens(
    engine: Engine,
    tokenizer: Tokenizer,
    pairs: Iterable[tuple[Sequence[str], Sequence[str]]],
    size: int,
) -> Iterator[Scored]:
    """The same for lines in pieces, which may be several parts, each with EOS at its end.

    Raises:
        TokenizerError: for a piece that the vocabulary lacks.
        DataError: for a line and a translation of unequally many parts.
    """
    for window in windows(pairs, 1 if size == 1 else WINDOW * size):
        cut = [
            (_parts(tokenizer.numbers(source)), _parts(tokenizer.numbers(target)))
            for source, target in window
        ]
        for sources, targets in cut:
            if len(sources) != len(targets):
                raise DataError(
                    f"a translation in {len(targets)} parts of a line in {len(sources)}: where one "
                    "of the parts did not come to an end it cannot be told from the next"
                )
        rows = [row for sources, _ in cut for row in sources]
        given = [row for _, targets in cut for row in targets]
        parts = iter(scored_rows(engine, tokenizer, rows, given, size))
        for (source, target), (_, targets) in zip(window, cut, strict=True):
            read = [next(parts) for _ in targets]
            yield _joined(read, tuple(source), tuple(target)) if source or target else BLANK


def word_attention(
    engine: Engine, tokenizer: Tokenizer, pairs: Iterable[tuple[str, str]], size: int
) -> Iterator[npt.NDArray[np.float16]]:
    """[N words, M words] of each pair: how much of a word's attention is on each source word.

    Summed over the pieces of the source's word, the mean over those of the translation's; what is
    on EOS is left out. Without rows or columns where a side has no words.
    """
    for window in windows(pairs, 1 if size == 1 else WINDOW * size):
        rows = tokenizer.encode_batch([source for source, _ in window])
        targets = tokenizer.encode_batch([target for _, target in window])
        found: dict[int, npt.NDArray[np.float16]] = {}
        for at, followed in _followed(engine, rows, targets, size):
            assert followed.attention is not None  # asked for
            source, target = (
                _membership(tokenizer, text, row)
                for text, row in zip(window[at], (rows[at], targets[at]), strict=True)
            )
            mean = target / np.maximum(target.sum(axis=0), 1.0)
            found[at] = (mean.T @ followed.attention[:-1, :-1] @ source).astype(np.float16)
        yield from (found[at] for at in range(len(window)))


def _membership(tokenizer: Tokenizer, text: str, row: Row) -> npt.NDArray[np.float32]:
    """[pieces, words]: 1 where a piece is in a word."""
    held = piece_words(tokenizer.pieces(row), tokenizer.encode_spans(text), line_words(text))
    member = np.zeros((len(row), len(text.split())), np.float32)
    for piece, words in enumerate(held):
        member[piece, list(words)] = 1.0
    return member


def aligned(tokenizer: Tokenizer, source: str, target: str, scored: Scored) -> Aligned:
    """Words that stand for each other; none where a side has nothing to be seen."""
    told = scored.alignment, scored.source_tokens, scored.tokens
    if is_blank(source) or is_blank(target):
        return Aligned((), (), *told[1:])
    sides = ((source, scored.source_tokens), (target, scored.tokens))
    sources, targets = (
        piece_words(tokens[:-1], tokenizer.encode_spans(text), line_words(text))
        for text, tokens in sides
    )
    return Aligned(word_alignment(scored.alignment, sources, targets), *told)


def _parts(row: Row) -> list[Row]:
    """What stands before each EOS, and what is left."""
    ends = [at for at, number in enumerate(row) if number == EOS]
    starts = [0, *(end + 1 for end in ends)]
    cut = [row[start:end] for start, end in zip(starts, [*ends, len(row)], strict=True)]
    return cut if cut[-1] or len(cut) == 1 else cut[:-1]


def _joined(parts: list[Scored], source: tuple[str, ...], target: tuple[str, ...]) -> Scored:
    """Parts as one; a last part without EOS has no probability of it."""
    pairs, probabilities, start, source_start = list[tuple[int, int]](), list[float](), 0, 0
    for part in parts:
        pairs += [(source_start + i, start + j) for i, j in part.alignment]
        probabilities += part.token_log_probabilities
        start, source_start = start + len(part.tokens), source_start + len(part.source_tokens)
    return Scored(target, tuple(probabilities[: len(target)]), source, tuple(pairs))
