"""Placeholders in a text: what a translation has to hold as it stands."""

import re
from collections import Counter
from collections.abc import Iterable

PLACEHOLDER = re.compile(
    r"\{\{[^{}]+\}\}"  # {{name}}
    r"|[$#%]?\{[^{}\s]*\}"  # {}, {0}, {name:>5}, ${name}, #{name}, %{name}
    r"|(?<![\w%])%(?:\(\w++\)|\d++\$)?[-+#0]*+\d*+(?:\.\d++)?(?:hh|ll|[hlLqjzt])?[diouxXeEfFgGcrsa@]"
    r"(?!\w)"  # %s, %(count)d, %1$s, %5.2f
    r"|%[A-Za-z_]\w*+%"  # %USER%
    r"|(?:https?|ftp)://[^\s<>\"'`]*[^\s<>\"'`.,;:!?)\]}»”]"
    r"|\bwww\.[^\s<>\"'`]*[^\s<>\"'`.,;:!?)\]}»”]"
    r"|(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)++"
)
"""Braces, with a dollar, hash or per cent sign ahead too; formats of C and Python; addresses of the
web and of mail."""


def placeholders(text: str, patterns: Iterable[re.Pattern[str]]) -> list[re.Match[str]]:
    """What the patterns find, in their order; a blank match is none."""
    return [m for pattern in patterns for m in pattern.finditer(text) if m[0].strip()]


def changed_placeholders(
    source: str, translation: str, patterns: Iterable[re.Pattern[str]], known: Iterable[str]
) -> str:
    """What became of the source's placeholders: ``lacks {name}, adds %s``; empty if all's well.

    Each counts as often as it occurs. ``known`` are told of elsewhere.
    """
    patterns, left_out = list(patterns), set(known)
    expected, found = (
        [m[0] for m in placeholders(text, patterns) if m[0] not in left_out]
        for text in (source, translation)
    )
    if expected == found:  # mostly there are none
        return ""
    parts = []
    for verb, more, less in (("lacks", expected, found), ("adds", found, expected)):
        if missing := list((Counter(more) - Counter(less)).elements()):
            parts.append(f"{verb} {' '.join(missing)}")
    return ", ".join(parts)
