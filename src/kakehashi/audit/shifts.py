"""Where one side of a corpus is ahead of the other, and by how many lines.

Every line is held against its partner and against the neighbours of that; the evidence of each is
a logarithm of odds, fitted on the corpus itself, and the likeliest path through all shifts, each
change of which costs, says where line k no longer translates line k (as in Gale and Church, 1993,
with words beside lengths, and with one state more, in which no shift fits).
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kakehashi.audit.evidence import (
    N_FEATURES,
    Floats,
    Side,
    association,
    features,
    read_sides,
    shifted,
)
from kakehashi.audit.findings import Text

SHIFTS = 3
"""Shifts that are looked at on either side, where the files are of one length, and around each that
was found further off."""
_MOST_SHIFTS = 30
_SHORT = 10_000
"""Lines of a text that is short enough to look further off in any case: it takes some seconds."""
_LONG_STRETCH = 30
"""Lines that a shift further off has to hold for: of so many, one fits some lines by chance."""
_CELLS = 6_000_000
"""Lines times shifts on one side: some 700 MB of evidence."""
_CHANGE = 15.0
"""What a change of shift costs, in nats."""
_BOUND = 4.0
"""Bound of what one line can say for or against a shift, in nats."""
_NONE = 0.5
"""What lines that fit nowhere have ahead of the mean of all shifts, in nats."""
_BLOCK = 50
_FITTED = 20_000


@dataclass(frozen=True)
class Segment:
    """A stretch of source lines whose partners all stand equally far from their own place."""

    start: int
    """Its first line, counted from 0; the next stretch begins at `end`."""
    end: int
    shift: int | None
    """How much further down the target the partners stand; None where no shift fits."""
    earliest: int
    """The change at `start` may lie as early as here, and as late as `latest`."""
    latest: int


def odds(source: Side, target: Side, shifts: list[int]) -> Floats:
    """[lines of the source, shifts]: log odds that the lines translate each other."""
    n = len(source.lengths)
    associated = association(source, target, shifts)
    seen = np.zeros((n, len(shifts), N_FEATURES), np.float32)
    there = np.zeros((n, len(shifts)), bool)
    rows = np.arange(n)
    for column, shift in enumerate(shifts):
        here, partner = shifted(source, target, shift, rows)
        seen[here, column] = features(source, target, associated, here, partner)
        there[here, column] = True
    weights, bias = _fit(seen, there)
    found = np.clip(seen @ weights + bias, -_BOUND, _BOUND)
    # A partner beyond the end of its file is some evidence against.
    return np.where(there, found, np.float32(-1.0))


def _fit(seen: Floats, there: NDArray[np.bool_]) -> tuple[Floats, float]:
    """Logistic regression of partners against neighbours of partners.

    Which is the partner is guessed for whole blocks of lines, by the shift at which all features
    together are highest: no line's own evidence decides for it.
    """
    flat = seen[there]
    centre, scale = flat.mean(0), np.maximum(flat.std(0), 1e-6)
    standard = (seen - centre) / scale
    # The squared lengths say nothing by themselves about which is the partner.
    rough = np.where(there, standard[:, :, [0, 1, 2, 4]].sum(2), 0.0)
    n = len(seen)
    blocks = np.add.reduceat(rough, np.arange(0, n, _BLOCK), axis=0)
    best = np.repeat(blocks.argmax(1), _BLOCK)[:n]
    lines = np.arange(n)[:: max(1, n // _FITTED)]
    lines = lines[there[lines, best[lines]]]
    partner = np.zeros_like(there)
    partner[lines, best[lines]] = True
    chosen = np.zeros_like(there)
    chosen[lines] = there[lines]
    x = np.concatenate([standard[chosen], np.ones((int(chosen.sum()), 1))], axis=1)
    y = partner[chosen].astype(np.float64)
    weight = np.where(y == 1, 0.5 / max(1, y.sum()), 0.5 / max(1, (1 - y).sum()))
    solution = _logistic(x.astype(np.float64), y, weight)
    weights = solution[:-1] / scale
    return weights.astype(np.float32), float(solution[-1] - weights @ centre)


def _logistic(
    x: NDArray[np.float64], y: NDArray[np.float64], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Newton's method on the weighted log likelihood with a small penalty on the weights."""
    solution = np.zeros(x.shape[1])
    penalty = np.full(x.shape[1], 1e-3)
    for _ in range(15):
        p = 1 / (1 + np.exp(-np.clip(x @ solution, -30, 30)))
        gradient = x.T @ (weight * (y - p)) - penalty * solution
        curvature = (x * (weight * p * (1 - p))[:, None]).T @ x + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        solution += step
        if np.abs(step).max() < 1e-6:
            break
    return solution


def likeliest(evidence: Floats, change: float = _CHANGE) -> NDArray[np.int64]:
    """The column of each line on the path with the most evidence, each change of column costing.

    Column 0 is where a path begins free of cost. Viterbi's algorithm; the best change at a line
    is the same for all columns, which makes it linear in lines and columns.
    """
    n, columns = evidence.shape
    back = np.empty((n, columns), np.int16)
    total = evidence[0].astype(np.float64)
    total[1:] -= change
    same = np.arange(columns)
    for i in range(1, n):
        best = int(total.argmax())
        moved = total[best] - change
        jumps = total < moved
        back[i] = np.where(jumps, best, same)
        total = np.where(jumps, moved, total) + evidence[i]
    path = np.empty(n, np.int64)
    path[-1] = int(total.argmax())
    for i in range(n - 1, 0, -1):
        path[i - 1] = back[i, path[i]]
    return path


def reach(text: Text) -> int:
    """The largest shift that is looked at; less in a very large corpus, where memory bounds it."""
    return max(SHIFTS, min(_MOST_SHIFTS, _CELLS // max(1, len(text.source))))


def segments(text: Text) -> list[Segment]:
    """Stretches of lines with one shift each, in order; one with shift 0 for an aligned corpus.

    Shifts are looked at as far as the counts differ, and one more. In a short text, and where a
    stretch of a long one fits none of them, all within `reach` are, and then the first ones again
    together with those that were found: the fewer, the better is their evidence.
    """
    most = reach(text)
    apart = abs(len(text.source) - len(text.target))
    first = _around(0, min(most, max(SHIFTS, apart + 1)))
    short = len(text.source) <= _SHORT
    found = [] if short else _segments(text, first)
    if short or _unmatched(found):
        far = _segments(text, _around(0, most))
        further = {
            shift
            for segment in far
            if segment.shift is not None
            and segment.shift not in first
            and segment.end - segment.start >= _LONG_STRETCH
            for shift in _around(segment.shift, SHIFTS)
        }
        found = _segments(text, first | further)
        # What fits none of many shifts may fit one of few by chance.
        return far if _unmatched(far) and not _unmatched(found) else found
    return found


def _unmatched(found: list[Segment]) -> bool:
    return any(segment.shift is None for segment in found)


def _around(shift: int, most: int) -> set[int]:
    return set(range(shift - most, shift + most + 1))


def _segments(text: Text, looked_at: set[int]) -> list[Segment]:
    """The same, of these shifts; 0 is among them."""
    n = len(text.source)
    shifts = sorted(looked_at, key=abs)
    source, target = read_sides(text.source, text.target)
    known = odds(source, target, shifts)
    # That none of the shifts fits is as likely as they all are on average, and a little more: a
    # stretch that is hard to match, but best unshifted, is not one of those.
    none = np.minimum(known.mean(1, keepdims=True) + np.float32(_NONE), 0)
    evidence = np.concatenate([known, none], axis=1)
    path = likeliest(evidence)
    starts = [0, *(np.flatnonzero(np.diff(path)) + 1).tolist(), n]
    found = []
    for start, end in pairwise(starts):
        column = int(path[start])
        low, high = _uncertain(evidence, path, start)
        shift = shifts[column] if column < len(shifts) else None
        found.append(Segment(start, end, shift, low, high))
    return found


def _uncertain(evidence: Floats, path: NDArray[np.int64], start: int) -> tuple[int, int]:
    """Between which lines the change at `start` lies: less than 3 nats from the best place."""
    if start == 0:
        return 0, 0
    first, second = int(path[start - 1]), int(path[start])
    low, high = max(0, start - 100), min(len(path), start + 100)
    gain = np.cumsum(evidence[low:high, first] - evidence[low:high, second])
    gain = np.concatenate([[0.0], gain])
    near = np.flatnonzero(gain > gain[start - low] - 3.0) + low
    # The stretch of such places around the best one.
    inside = near[(near <= start)][::-1]
    earliest = start
    for place in inside:
        if earliest - place > 1:
            break
        earliest = int(place)
    latest = start
    for place in near[near >= start]:
        if place - latest > 1:
            break
        latest = int(place)
    return earliest, latest
