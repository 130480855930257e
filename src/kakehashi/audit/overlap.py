"""Sentences that two splits share: what a test set must not have in common with training."""

from collections.abc import Iterator, Mapping

import numpy as np

from kakehashi.audit.findings import MAX_EXAMPLES, MAX_LINES, Finding, Severity, Text
from kakehashi.audit.keys import Keys, Numbers, combine

_MANY = 0.01


def overlap(splits: Mapping[str, Text], keys: Mapping[str, Keys]) -> Iterator[Finding]:
    """For each two splits: shared pairs, sources and targets, exact and normalised."""
    names = list(splits)
    for position, first in enumerate(names):
        for second in names[position + 1 :]:
            yield from _between(first, second, splits, keys)


def _between(
    first: str, second: str, splits: Mapping[str, Text], keys: Mapping[str, Keys]
) -> Iterator[Finding]:
    a, b = keys[first], keys[second]
    compared: tuple[tuple[str, Numbers, Numbers, Numbers, Numbers], ...] = (
        (
            "pairs",
            combine(a.exact_source, a.exact_target),
            combine(b.exact_source, b.exact_target),
            combine(a.source, a.target),
            combine(b.source, b.target),
        ),
        ("source", a.exact_source, b.exact_source, a.source, b.source),
        ("target", a.exact_target, b.exact_target, a.target, b.target),
    )
    for what, exact_a, exact_b, folded_a, folded_b in compared:
        shared = np.flatnonzero(np.isin(folded_b, folded_a))
        if not len(shared):
            continue
        exactly = int(np.isin(exact_b, exact_a).sum())
        text, other = splits[second], splits[first]
        many = len(shared) > _MANY * len(folded_b)
        severity: Severity = "warning" if what == "pairs" or many else "note"
        examples = []
        for index in shared[:MAX_EXAMPLES].tolist():
            where = int(np.flatnonzero(folded_a == folded_b[index])[0])
            examples.append(text.example(index, f"{first} line {other.lines[where]}"))
        noun = "pairs" if what == "pairs" else f"{what} sentences"
        yield Finding(
            f"overlap.{first}.{second}.{what}",
            severity,
            f"{noun} of {second} that also stand in {first} ({exactly:,} exactly, the rest but "
            "for case, spaces and punctuation)",
            len(shared),
            len(folded_b),
            "both" if what == "pairs" else "source" if what == "source" else "target",
            tuple(text.lines[i] for i in shared[:MAX_LINES].tolist()),
            tuple(examples),
            "scores on them measure memory: leave them out of training (data.drop_overlap=true)",
        )
