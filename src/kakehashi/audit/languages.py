"""Whether each side is written in its script and its language."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from kakehashi.audit.findings import Finding, Hits, Severity, Side, Text
from kakehashi.data.languages import identifier
from kakehashi.data.scripts import script_share, scripts_of

IDENTIFIED = 100_000
"""Lines of a side that are identified; of longer ones, every so many."""
_SCRIPT_SHARE = 0.5
_FEW = 10
"""Lines that say nothing yet about a whole side."""


def wrong_script(text: Text) -> Iterator[Finding]:
    """Lines of which most letters are not of the scripts of their side's language."""
    for side, lines, language in text.sides():
        scripts = scripts_of(language) if language else None
        if scripts is None:
            continue
        share = script_share(scripts)
        latin = "Latn" in scripts
        hits = Hits()
        for index, line in enumerate(lines):
            if latin and line.isascii():
                continue
            if (part := share(line)) < _SCRIPT_SHARE:
                hits.add(index, f"{part:.0%} of the letters")
        if hits.count:
            title = f"lines that are not in the script of {language} ({', '.join(scripts)})"
            severity: Severity = "error" if hits.count > 0.5 * len(lines) else "warning"
            advice = "another language, or an untranslated line"
            yield hits.finding(text, "language.script", severity, title, side, advice)


def languages(text: Text) -> Iterator[Finding]:
    """Lines that are surely in another language than their side's, by py3langid.

    A side of which no language is said (or none that the library knows) is held against the one
    that most of its lines are in.
    """
    model = identifier()
    for side, lines, language in text.sides():
        step = max(1, -(-len(lines) // IDENTIFIED))
        indices = range(0, len(lines), step)
        named = ((index, model.identify(lines[index])) for index in indices)
        found = {index: name for index, name in named if name is not None}
        if found:
            yield from _judge(text, side, model.code(language), found, len(indices), step)


def _judge(
    text: Text, side: Side, expected: str, found: dict[int, str], tried: int, step: int
) -> Iterator[Finding]:
    counts = Counter(found.values())
    most, n_most = counts.most_common(1)[0]
    part = f" (one line in {step} was looked at)" if step > 1 else ""
    if expected and most != expected and n_most > max(_FEW, 0.5 * len(found)):
        yield Finding(
            "language.side",
            "error",
            f"the {side} is said to be {expected}, and most of it looks like {most}{part}",
            n_most,
            tried,
            side,
            tuple(text.lines[i] for i, name in found.items() if name == most)[:5],
            (),
            "the sides may be exchanged, or the language is another one",
        )
        return
    hits = Hits()
    others: Counter[str] = Counter()
    for index, name in found.items():
        if name != (expected or most):
            hits.add(index, f"looks like {name}")
            others[name] += 1
    if hits.count:
        shown = ", ".join(f"{name} × {n:,}" for name, n in others.most_common(3))
        title = f"lines that look like another language than {expected or most}: {shown}{part}"
        severity: Severity = "warning" if hits.count > 0.01 * tried else "note"
        advice = "identification errs on short lines and names: look at the examples"
        finding = hits.finding(text, "language.identified", severity, title, side, advice)
        yield replace(finding, of=tried)
