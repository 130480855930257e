"""What the pieces of a translation spell, and where each of them stands in it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kakehashi.data.tokenizer import Span, Tokenizer
from kakehashi.inference.links import in_word, word_spans
from kakehashi.inference.translation import one_line, places_on_one_line
from kakehashi.symbols import UNK


@dataclass(frozen=True)
class Spelled:
    """A text and the place of each of its pieces."""

    text: str
    pieces: tuple[Span, ...]
    unknown: tuple[int, ...]
    """Which of the pieces are unknown ones."""


def spelled_source(tokenizer: Tokenizer, text: str, ids: Sequence[int]) -> Spelled:
    """A text as it was given, and its pieces."""
    return Spelled(text, tuple(tokenizer.encode_spans(text)), _unknown(ids))


def spelled_translation(tokenizer: Tokenizer, ids: Sequence[int]) -> Spelled:
    """What a model wrote, on one line."""
    text = tokenizer.decode(ids)
    places = places_on_one_line(text)
    spans = ((places[start], places[end]) for start, end in tokenizer.decode_spans(ids))
    return Spelled(one_line(text), tuple(spans), _unknown(ids))


def _unknown(ids: Sequence[int]) -> tuple[int, ...]:
    return tuple(place for place, piece in enumerate(ids) if piece == UNK)


def copy_unknown(
    translation: Spelled, source: Spelled, attention: npt.NDArray[np.float32]
) -> Spelled:
    """A translation with something of its source in the place of each unknown piece.

    Luong et al. (2015), "Addressing the Rare Word Problem in Neural Machine Translation", with
    attention for the alignment: of the source's unknown pieces, or else of all, the one that the
    piece looks at most. In the place of a whole word stands the whole word of the source that this
    one is in; within a word, where the source has an unknown piece, what that one stands for.

    Args:
        translation: with unknown pieces.
        source: its source.
        attention: [N + 1, M + 1], see ``Followed.attention``.
    """
    if not source.pieces:
        return translation
    text, shift = "", 0
    spans = list(translation.pieces)
    words = word_spans(source.text, [end for _, end in source.pieces])
    done = 0
    for place in translation.unknown:
        start, end = translation.pieces[place]
        looks = attention[place]
        candidates = source.unknown or range(len(source.pieces))
        found = max(candidates, key=lambda piece: float(looks[piece]))
        within = in_word(translation.text[start - 1 : start]) or in_word(
            translation.text[end : end + 1]
        )
        first, last = source.pieces[found]
        if not (within and source.unknown):
            first, last = _word_of(words, first, last)
        copied = one_line(source.text[first:last]).strip()
        text += translation.text[done:start] + copied
        done = end
        spans[place] = (start + shift, start + shift + len(copied))
        shift += len(copied) - (end - start)
        spans[place + 1 :] = [(b + shift, e + shift) for b, e in translation.pieces[place + 1 :]]
    return Spelled(text + translation.text[done:], tuple(spans), translation.unknown)


def _word_of(words: Sequence[Span], start: int, end: int) -> Span:
    """The word that has most of these characters; they themselves, where none has any."""
    best = max(
        words, key=lambda word: min(word[1], end) - max(word[0], start), default=(start, end)
    )
    return best if min(best[1], end) > max(best[0], start) else (start, end)
