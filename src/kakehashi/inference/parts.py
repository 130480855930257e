"""Cutting a sentence that is longer than anything in a model's training into parts that are not.

A model that has seen sentences only says little of a page: it tends to end its translation early,
or never. Where a sentence is cut is a function of the sentence alone.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator

from kakehashi.data.reading import is_blank

BOUNDARIES = tuple(re.compile(pattern) for pattern in (r"[,;:،؛]\s+|[、，；：]\s*", r"\s+"))
"""Where a sentence may be cut: best after a clause, else between two words."""


def parts(sentence: str, fits: Callable[[str], bool]) -> Iterator[str]:
    """The parts of a sentence that ``fits`` accepts, in order, blank ones left out.

    One that is too long is cut near its middle, and so is each half, as often as it takes: the
    parts of a long sentence are of like length. Joined they are the sentence, blank parts apart.

    Args:
        sentence: text.
        fits: whether a part is short enough; a single character is always taken to be.
    """
    if is_blank(sentence):
        return
    if len(sentence) < 2 or fits(sentence):
        yield sentence
        return
    middle = _cut(sentence)
    yield from parts(sentence[:middle], fits)
    yield from parts(sentence[middle:], fits)


def _cut(line: str) -> int:
    """The best place to cut in the middle third of a text, the nearest to the middle of equals."""
    length = len(line)
    third = length // 3
    for boundary in BOUNDARIES:
        ends = [found.end() for found in boundary.finditer(line, third, length - third)]
        inside = [end for end in ends if 0 < end < length]
        if inside:
            return min(inside, key=lambda end: abs(2 * end - length))
    places = sorted(range(max(1, third), length - third), key=lambda at: abs(2 * at - length))
    return next((at for at in places if not _joined(line, at)), length // 2)


def _joined(line: str, at: int) -> bool:
    """Whether the characters on both sides belong together: a letter and its marks, an emoji."""
    return line[at - 1] == "\u200d" or unicodedata.category(line[at]) in ("Mn", "Mc", "Me", "Cf")
