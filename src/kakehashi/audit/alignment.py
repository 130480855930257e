"""What the shifts inside a corpus are told as: from which line on, by how much, until where."""

from collections.abc import Iterator

from kakehashi.audit.findings import MAX_EXAMPLES, Finding, Text
from kakehashi.audit.shifts import Segment, reach, segments

SHORTEST = 30
"""Pairs below which there is too little to see a shift in."""


def alignment(text: Text) -> Iterator[Finding]:
    """Unequal counts, shifts, and stretches where no shift fits."""
    n, m = len(text.source), len(text.target)
    if n != m:
        yield Finding(
            "alignment.counts",
            "error",
            f"{n:,} lines of source and {m:,} lines of target",
            abs(n - m),
            0,
            advice="line k of one must translate line k of the other; training refuses such files",
        )
    if min(n, m) < SHORTEST:
        return
    found = segments(text)
    for number, segment in enumerate(found):
        if segment.shift is None:
            yield _unmatched(text, segment)
        elif segment.shift != 0:
            before = found[number - 1].shift if number else 0
            yield _shifted(text, segment, before)


def _shifted(text: Text, segment: Segment, before: int | None) -> Finding:
    shift, start = segment.shift, segment.start
    assert shift is not None
    first, last = text.lines[start], text.lines[segment.end - 1]
    until = "the end" if segment.end >= len(text.source) else f"line {last}"
    where = f"from line {first} to {until}"
    if segment.earliest != segment.latest and start:
        low, high = text.lines[segment.earliest], text.lines[min(segment.latest, len(text) - 1)]
        where += f" (it begins between {low} and {high})"
    partner_line = f"k {'+' if shift > 0 else '-'} {abs(shift)}"
    title = f"shifted {where}: source line k goes with target line {partner_line}"
    step = shift - (before or 0)
    examples = []
    for i in range(start, min(segment.end, start + MAX_EXAMPLES)):
        if 0 <= i + shift < len(text.target):
            partner = text.target[i + shift]
            examples.append(text.example(i, f"goes with: {partner}"))
    return Finding(
        "alignment.shift",
        "error",
        title,
        segment.end - start,
        len(text),
        "both",
        (first,),
        tuple(examples),
        f"near line {first} {_lost(step)}",
    )


def _lost(step: int) -> str:
    """What must have happened for the shift to change by `step`."""
    lines = "a line is" if abs(step) == 1 else f"{abs(step)} lines are"
    one, other = ("target", "source") if step < 0 else ("source", "target")
    return f"{lines} missing on the {one} side, or too many on the {other} side"


def _unmatched(text: Text, segment: Segment) -> Finding:
    first, last = text.lines[segment.start], text.lines[segment.end - 1]
    whole = segment.end - segment.start > 0.9 * len(text)
    where = "nearly everywhere" if whole else f"from line {first} to {last}"
    inside = range(segment.start, min(segment.end, segment.start + MAX_EXAMPLES, len(text)))
    return Finding(
        "alignment.unmatched",
        "error" if whole else "warning",
        f"the sides do not seem to translate each other {where}",
        segment.end - segment.start,
        len(text),
        "both",
        (first,),
        tuple(text.example(i) for i in inside),
        f"neither line by line nor shifted by up to {reach(text)} lines; look at the pairs",
    )
