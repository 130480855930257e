"""What became of a line: its translations, their scores, and what the reader should know."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, chain
from math import exp, fsum

from kakehashi.inference.alignment import Pairs
from kakehashi.inference.placing import Link

_BREAK = re.compile("[\n\x0b\x0c\r\x1c-\x1f\x85\u2028\u2029\u2581]")
_CONTROL = re.compile("\r(?=\n)|[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")


@dataclass(frozen=True)
class Candidate:
    """One translation of a line."""

    text: str
    score: float
    """What ranked it: ``log p / length ** length_penalty``, see ``DecodingConfig``."""
    log_probability: float
    """Natural logarithm of the model's probability of all pieces, EOS included."""
    tokens: tuple[str, ...] = ()
    """Its pieces, EOS last; these four are there when ``details`` are asked for."""
    token_log_probabilities: tuple[float, ...] = ()
    """Of each piece given those before it."""
    alignment: Pairs = ()
    """Source token, token: see ``piece_alignment``."""
    word_alignment: Pairs = ()
    """Word of the line, word of ``text``: those that white space divides, from 0. Of a line with
    tags that were taken out, the words of both without their tags."""
    links: tuple[Link, ...] = field(default=(), repr=False, compare=False)
    """Its words and those of the line, for as long as the line's tags are not put back."""

    @property
    def confidence(self) -> float | None:
        """The geometric mean of its pieces' probabilities; None where they were not asked for.

        A number between 0 and 1 to tell translations of a model apart, not a chance of being right.
        """
        if not self.token_log_probabilities:
            return None
        return exp(fsum(self.token_log_probabilities) / len(self.token_log_probabilities))


@dataclass(frozen=True)
class Translation:
    """What became of one line."""

    text: str
    score: float
    """Of the best candidate; 0 for a blank line. The mean of its parts' scores for a line that was
    translated in parts."""
    hypotheses: tuple[Candidate, ...]
    """The n-best list, best first; the first has ``text`` and ``score``."""
    warnings: tuple[str, ...] = ()
    """What the reader should know: in one sentence that the line is longer than the model's
    training and was translated in parts, or that a translation did not come to an end; in another
    one each that user-defined symbols, other placeholders or terms were lost or added; in another
    that there was no room for what was required, or that something forbidden came out in other
    pieces."""
    source_tokens: tuple[str, ...] = ()
    """The line's pieces, EOS last (after each part of a line that was translated in parts); there
    when ``details`` are asked for."""
    seconds: float = field(default=0.0, compare=False)
    """Time that its decoding took, an equal share of that of the lines it was decoded with. Batches
    are decoded side by side: all lines together may have more than has passed by the clock."""


BLANK = Translation("", 0.0, (Candidate("", 0.0, 0.0),))
"""What becomes of a line without visible characters."""


def join_parts(
    parts: Sequence[Sequence[Candidate]], n_best: int, joints: Sequence[str], ranked: bool = True
) -> tuple[Candidate, ...]:
    """Translations of a line made of those of its parts.

    Args:
        parts: the candidates of each part.
        n_best: how many to return at most.
        joints: what to put before each part but the first.
        ranked: whether candidates are ordered by their scores: then the best ways to take one of
            each part are returned, best first. Else the first of each part go together, the
            second, and so on, as is due to samples: draw 3 of a line is draw 3 of its parts. (Of a
            part that has too few the last is taken.)

    Returns:
        Joined candidates, with the mean of their parts' scores. The first is made of the
        first ones.
    """
    if len(parts) == 1:
        return tuple(parts[0][:n_best])
    if ranked and n_best > 1:
        ways = _best_ways([[c.score for c in part] for part in parts], n_best)
    else:
        longest = max(map(len, parts))
        ways = [[min(k, len(p) - 1) for p in parts] for k in range(min(n_best, longest))]
    return tuple(
        _joined([part[at] for part, at in zip(parts, way, strict=True)], joints) for way in ways
    )


def _best_ways(scores: Sequence[Sequence[float]], n_best: int) -> list[list[int]]:
    """The ways to take one number of each row, falling ones, with the greatest sums."""
    sums, steps = [Fraction(0)], list[list[tuple[int, int]]]()
    for row in scores:
        # The sums are exact: equal parts in another order are equal, and stay in their order.
        exact = [Fraction(score) for score in row]
        # (i + 1) * (j + 1) - 1 others are at least as good as i and j together.
        longer = [(i, j) for i in range(len(sums)) for j in range(min(len(row), n_best // (i + 1)))]
        longer.sort(key=lambda pair: -(sums[pair[0]] + exact[pair[1]]))
        steps.append(longer[:n_best])
        sums = [sums[i] + exact[j] for i, j in steps[-1]]
    ways = []
    for last in range(len(sums)):
        way, at = list[int](), last
        for step in reversed(steps):
            at, taken = step[at]
            way.append(taken)
        ways.append(way[::-1])
    return ways


def _joined(way: Sequence[Candidate], joints: Sequence[str]) -> Candidate:
    starts = accumulate((len(c.tokens) for c in way), initial=0)
    words, links, text = list[tuple[int, int]](), list[Link](), ""
    for candidate, joint in zip(way, ("", *joints), strict=True):
        text += joint if text and candidate.text else ""
        # The first word of a part goes on with the last one of the part before without a joint.
        within = bool(text) and not text[-1].isspace() and not candidate.text[:1].isspace()
        first = len(text.split()) - within
        words += [(i, first + j) for i, j in candidate.word_alignment]
        links += [link.moved(len(text)) for link in candidate.links]
        text += candidate.text
    return Candidate(
        text,
        fsum(c.score for c in way) / len(way),
        fsum(c.log_probability for c in way),
        tuple(chain.from_iterable(c.tokens for c in way)),
        tuple(chain.from_iterable(c.token_log_probabilities for c in way)),
        tuple(
            (i, start + j) for c, start in zip(way, starts, strict=False) for i, j in c.alignment
        ),
        tuple(words),
        tuple(links),
    )


def one_line(text: str) -> str:
    """The text on one line: no break of any kind, no control character, no mark for a space."""
    return _BREAK.sub(" ", _CONTROL.sub("", text))


def places_on_one_line(text: str) -> list[int]:
    """Where each character of a text stands, or would, in ``one_line`` of it; its end last."""
    gone = {found.start() for found in _CONTROL.finditer(text)}
    return list(accumulate((at not in gone for at in range(len(text))), initial=0))
