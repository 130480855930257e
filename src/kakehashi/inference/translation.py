"""What became of a line: its translations, their scores, and what the reader should know."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import fsum

from kakehashi.decoding.hypothesis import Hypothesis

_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Translation:
    """What became of one line."""

    text: str
    score: float
    """``log p / length ** length_penalty`` of the best hypothesis; 0 for a blank line. The mean of
    its parts' scores for a line that was translated in parts."""
    hypotheses: tuple[tuple[str, float], ...]
    """The n-best list, best first: texts and scores; the first is ``text`` and ``score``."""
    warnings: tuple[str, ...] = ()
    """What the reader should know: in one sentence that the line is longer than the model's
    training and was translated in parts, or that a translation did not come to an end; in another
    one that user-defined symbols were lost or added."""


@dataclass
class Line:
    """A line on its way: the pieces of its parts, and what has been found for them."""

    number: int
    """From 1."""
    length: int
    """Pieces of the whole line, EOS included."""
    parts: list[list[int]]
    """Pieces of each part without EOS; none for a blank line."""
    found: dict[int, list[Hypothesis]] = field(default_factory=dict)
    """The n-best list of each part."""

    @property
    def done(self) -> bool:
        """Whether every part has been translated."""
        return len(self.found) == len(self.parts)

    def warnings(self, max_length: int) -> tuple[str, ...]:
        """One sentence, if there is something to say; the model was trained on ``max_length``."""
        cut = [best[0] for best in self.found.values() if not best[0].finished]
        several = len(self.parts) > 1
        ending = ""
        if cut and several:
            ending = f"the translation of {len(cut):,} of them did not come to an end and was cut"
        elif cut:
            pieces = len(cut[0].ids)
            ending = f"the translation did not come to an end and was cut after {pieces:,} pieces"
        if not several and self.length <= max_length:
            return (f"line {self.number}: {ending}",) if ending else ()
        how = f"in {len(self.parts):,} parts, each by itself" if several else "whole"
        return (
            f"line {self.number} has {self.length:,} pieces, the model was trained on at most "
            f"{max_length:,}: it was translated {how}" + (f"; {ending}" if ending else ""),
        )


def join_parts(
    parts: Sequence[Sequence[tuple[str, float]]], n_best: int, joint: str
) -> tuple[tuple[str, float], ...]:
    """The ``n_best`` best ways to take a hypothesis of each part, best first.

    Args:
        parts: the n-best list of each part: texts and scores, best first.
        n_best: how many to return at most.
        joint: what to put between two parts.

    Returns:
        Joined texts, and the mean of their parts' scores. The first is made of the best ones.
    """
    if len(parts) == 1:
        return tuple(parts[0][:n_best])
    chosen: list[tuple[tuple[str, ...], tuple[float, ...]]] = [((), ())]
    for part in parts:
        longer = [((*t, text), (*s, score)) for t, s in chosen for text, score in part]
        # An exact sum: equal parts in another order are equal, and stay in the order of the parts.
        chosen = sorted(longer, key=lambda way: -fsum(way[1]))[:n_best]
    return tuple((joint.join(filter(None, t)), fsum(s) / len(parts)) for t, s in chosen)


def one_line(text: str) -> str:
    """The text on one line: no break of any kind, no control character, no mark for a space."""
    return _CONTROL.sub("", " ".join(text.replace("\u2581", " ").splitlines()))
