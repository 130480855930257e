"""User-defined symbols: whether a translation has those of its source."""

from collections import Counter
from collections.abc import Iterable, Mapping


def changed_symbols(
    source: Iterable[int], translation: Iterable[int], symbols: Mapping[int, str]
) -> str:
    """What became of the source's symbols, such as ``lacks {name}, adds <b>``; empty if all's well.

    Their order is not compared, since languages differ in theirs. ``symbols`` are the texts of
    those pieces.
    """
    expected = [i for i in source if i in symbols]
    found = [i for i in translation if i in symbols]
    if expected == found:  # mostly there are none
        return ""
    parts = []
    for verb, more, less in (("lacks", expected, found), ("adds", found, expected)):
        if names := [symbols[i] for i in (Counter(more) - Counter(less)).elements()]:
            parts.append(f"{verb} {' '.join(names)}")
    return ", ".join(parts)
