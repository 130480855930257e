"""What in a text makes its scores mean less than they seem to."""

import unicodedata
from collections.abc import Sequence

_SHARE_TOKENISED = 0.1


def numbered(lines: Sequence[int]) -> str:
    """The first few of some line numbers: ``line 7``, ``first lines 3, 9, 12``."""
    if len(lines) == 1:
        return f"line {lines[0]:,}"
    return "first lines " + ", ".join(f"{line:,}" for line in lines[:5])


def composition_warning(name: str, lines: Sequence[str]) -> str | None:
    """Say where a text is not in Unicode's composed form, NFC; the text itself stays as it is.

    Two spellings of a letter that look the same (e with an accent as one character, or as two) do
    not match in any metric.
    """
    found = [n for n, line in enumerate(lines, 1) if not unicodedata.is_normalized("NFC", line)]
    if not found:
        return None
    return (
        f"{name}: {len(found):,} of {len(lines):,} lines are not in Unicode NFC "
        f"({numbered(found)}); characters composed in different ways do not match"
    )


def tokenised_warning(name: str, lines: Sequence[str]) -> str | None:
    """Say so when translations look tokenised: more than a tenth end in a space and a full stop."""
    found = [n for n, line in enumerate(lines, 1) if line.rstrip().endswith(" .")]
    if len(found) <= _SHARE_TOKENISED * len(lines):
        return None
    return (
        f"{name}: {len(found):,} of {len(lines):,} lines end in a full stop after a space "
        f"({numbered(found)}): they look tokenised; published scores compare with detokenised text"
    )
