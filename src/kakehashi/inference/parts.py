"""Cutting a line that is longer than anything in a model's training into parts that are not.

A model that has seen sentences only says little of a page: it tends to end its translation early,
or never. So a long line is translated part by part, and the parts are joined. Where a line is cut
is a function of the line alone.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator

from kakehashi.data.reading import is_blank

BOUNDARIES = tuple(
    re.compile(pattern)
    for pattern in (
        r"[.!?…؟]+[\"'»“”’)\]]*\s+|[。！？]+[」』”’）]*\s*",
        r"[,;:،؛]\s+|[、，；：]\s*",
        r"\s+",
    )
)
"""Where a line may be cut: best after a sentence, else after a clause, else between two words."""
WITHOUT_SPACES = frozenset(("zh", "zho", "cmn", "yue", "ja", "jpn", "th", "tha", "lo", "km", "my"))
"""Languages that put no space between sentences."""


def parts(line: str, fits: Callable[[str], bool]) -> Iterator[str]:
    """The parts of a line that ``fits`` accepts, in order, those without visible characters aside.

    A line that is too long is cut near its middle, and so is each half, as often as it takes: the
    parts of a long line are of like length. Joined they are the line, blank parts apart.

    Args:
        line: text.
        fits: whether a part is short enough; a single character is always taken to be.
    """
    if is_blank(line):
        return
    if len(line) < 2 or fits(line):
        yield line
        return
    middle = _cut(line)
    yield from parts(line[:middle], fits)
    yield from parts(line[middle:], fits)


def joint(language: str) -> str:
    """What stands between the translations of two parts in a target language."""
    return "" if re.split(r"[-_]", language.lower())[0] in WITHOUT_SPACES else " "


def _cut(line: str) -> int:
    """The best place to cut in the middle third of a line, the nearest to the middle of equals."""
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
