"""Words of a text, the pieces that spell them, and which word stands for which.

Shapes: M source pieces, N target pieces, EOS not counted; S and T words of the two.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from kakehashi.data.tokenizer import Span
from kakehashi.inference.placeholders import placeholders
from kakehashi.inference.placing import Link

SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
"""Letters of the scripts that are written without spaces: Thai, Lao, Burmese, Khmer, Han, kana."""
_JOINS = "-'’"


def word_spans(text: str, cuts: Iterable[int] = ()) -> list[Span]:
    """The words of a text, in order; each mark of punctuation is one.

    Together they are all of the text but its white space.

    Args:
        text: any text.
        cuts: places at which a word of a script without spaces ends: those between pieces.
    """
    places = set(cuts)
    spans: list[Span] = []
    start = 0
    for at, character in enumerate(text):
        if character.isspace() or (at > start and _ends_before(text, at, places)):
            if at > start:
                spans.append((start, at))
            start = at + character.isspace()
    if start < len(text):
        spans.append((start, len(text)))
    return spans


def _ends_before(text: str, at: int, cuts: set[int]) -> bool:
    """Whether a word ends between two characters, neither of which is white space."""
    left, right = text[at - 1], text[at]
    if unicodedata.category(right) in ("Mn", "Mc", "Me", "Cf") or left == "\u200d":
        return False
    if right in _JOINS:
        return not (in_word(left) and in_word(text[at + 1 : at + 2]))
    if left in _JOINS:
        return not (at > 1 and in_word(text[at - 2]) and in_word(right))
    if not (in_word(left) and in_word(right)):
        return True
    return at in cuts and bool(SPACELESS.match(left) or SPACELESS.match(right))


def in_word(character: str) -> bool:
    """Whether a character is a letter, a figure, or a mark on one."""
    return character == "_" or (character != "" and unicodedata.category(character)[0] in "LNM")


def word_links(
    text: str,
    pieces: Sequence[Span],
    source: str,
    source_pieces: Sequence[Span],
    attention: npt.NDArray[np.float32],
    kept: Sequence[re.Pattern[str]] = (),
) -> list[Link]:
    """For each word of a translation the word of the source that it looks at most.

    A word looks where its pieces do together, each at the step that writes it (see
    ``piece_alignment``). Figures and punctuation stand for their like, where there are any.

    Args:
        text: the translation.
        pieces: where its pieces stand in it.
        source: the source.
        source_pieces: where its pieces stand in it.
        attention: [N + 1, M + 1], see ``Followed.attention``.
        kept: what is one word, whatever it is made of: placeholders.
    """
    words = _joined(text, word_spans(text, [end for _, end in pieces]), kept)
    source_words = _joined(source, word_spans(source, [end for _, end in source_pieces]), kept)
    if not source_words:
        return []
    looks = attention[: len(pieces), : len(source_pieces)]
    weights = _spelling(words, pieces) @ looks @ _spelling(source_words, source_pieces).T
    links = []
    for (start, end), row in zip(words, weights, strict=True):
        word, looked = text[start:end], row
        if not any(map(str.isalpha, word)):
            alike = np.array([source[s:e] == word for s, e in source_words])
            looked = np.where(alike, row, -1.0) if alike.any() else row
        links.append(Link(start, end, *source_words[int(looked.argmax())]))
    return links


def _joined(text: str, words: list[Span], kept: Sequence[re.Pattern[str]]) -> list[Span]:
    """The words, those that have a part in the same match made one."""
    starts, ends = [start for start, _ in words], [end for _, end in words]
    glued: set[int] = set()  # words that go on with the one before
    for match in placeholders(text, kept):
        inside = range(bisect_right(ends, match.start()), bisect_left(starts, match.end()))
        glued.update(inside[1:])
    firsts = [number for number in range(len(words)) if number not in glued]
    lasts = [following - 1 for following in (*firsts[1:], len(words))]
    return [(starts[a], ends[b]) for a, b in zip(firsts, lasts, strict=True)] if words else []


def _spelling(words: Sequence[Span], pieces: Sequence[Span]) -> npt.NDArray[np.float32]:
    """[words, pieces]: 1 where a piece spells something of a word."""
    start, end = np.array(words, np.int64).reshape(-1, 2).T
    first, last = np.array(pieces, np.int64).reshape(-1, 2).T
    return ((start[:, None] < last) & (first < end[:, None])).astype(np.float32)
