"""Sentences that occur more than once in a corpus, as pairs and on one side."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from kakehashi.audit.findings import (
    MAX_EXAMPLES,
    MAX_LINES,
    Example,
    Finding,
    Severity,
    Side,
    Text,
)
from kakehashi.audit.keys import Keys, Numbers, combine, repeated

_MANY = 0.01
"""Share of pairs from which on repetitions are more than chance."""


def duplicates(text: Text, keys: Keys) -> Iterator[Finding]:
    """Pairs that occur again, exactly or normalised, and sides with several translations."""
    exact = combine(keys.exact_source, keys.exact_target)
    folded = combine(keys.source, keys.target)
    advice = "each counts several times in training, and may fall into two splits"
    groups = repeated(exact)
    if groups:
        yield _finding(text, "duplicates.exact", groups, "pairs that occur before", advice)
    # Groups of which all members are exact copies have been told already.
    further = [g for g in repeated(folded) if len(np.unique(exact[g])) > 1]
    if further:
        title = "pairs that occur before but for case, spaces and punctuation"
        yield _finding(text, "duplicates.normalised", further, title, advice)
    yield from _several(text, "source", keys.exact_source, exact, keys.full)
    yield from _several(text, "target", keys.exact_target, exact, keys.full)


def _finding(
    text: Text, code: str, groups: Sequence[NDArray[np.intp]], title: str, advice: str
) -> Finding:
    extra = sum(len(group) - 1 for group in groups)
    severity: Severity = "warning" if extra > _MANY * len(text) else "note"
    return Finding(
        code,
        severity,
        title,
        extra,
        len(text),
        "both",
        tuple(text.lines[int(i)] for group in groups for i in group[1:])[:MAX_LINES],
        tuple(_example(text, group) for group in groups[:MAX_EXAMPLES]),
        advice,
    )


def _example(text: Text, group: NDArray[np.intp]) -> Example:
    others = [str(text.lines[int(i)]) for i in group[1:6]]
    detail = f"again in line {', '.join(others)}" + (", ..." if len(group) > 6 else "")
    return text.example(int(group[0]), detail)


def _several(
    text: Text, side: Side, numbers: Numbers, pairs: Numbers, full: NDArray[np.intp]
) -> Iterator[Finding]:
    """One sentence of `side` with more than one translation."""
    groups = [full[g] for g in repeated(numbers[full])]
    groups = [g for g in groups if len(np.unique(pairs[g])) > 1]
    if not groups:
        return
    yield Finding(
        f"duplicates.{side}",
        "note",
        f"{side} sentences with several different translations",
        len(groups),
        len(text),
        side,
        tuple(text.lines[int(g[0])] for g in groups[:MAX_LINES]),
        tuple(_other_translation(text, g, pairs) for g in groups[:MAX_EXAMPLES]),
        "right for short sentences; held-out sets must not share them with training",
    )


def _other_translation(text: Text, group: NDArray[np.intp], pairs: Numbers) -> Example:
    other = int(group[np.flatnonzero(pairs[group] != pairs[group[0]])[0]])
    return text.example(int(group[0]), f"otherwise in line {text.lines[other]}")
