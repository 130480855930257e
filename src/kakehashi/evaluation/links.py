"""Word alignments of sentence pairs: their written form, and two directions made one.

A link (i, j) says that word i of the source and word j of the target stand for each other; both are
counted from 0.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kakehashi.errors import DataError

Links = frozenset[tuple[int, int]]
_LINK = re.compile(r"(\d+)([-p])(\d+)")
_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


@dataclass(frozen=True)
class Gold:
    """What people who aligned a sentence pair by hand are sure of, and what they let pass."""

    sure: Links
    possible: Links
    """The sure ones among them."""


class Symmetrisation(StrEnum):
    """How the alignments of two directions become one (Koehn, Och and Marcu, 2003)."""

    intersection = "intersection"
    """What both say: precise."""
    union = "union"
    """What either says: complete."""
    grow_diag = "grow-diag"
    """The intersection, grown by links of the union that touch it (corners count) and align a
    word that has no link yet."""
    grow_diag_final_and = "grow-diag-final-and"
    """That, and the links of each direction whose words both have none."""


def gold_links(lines: Iterable[str], name: str, *, first: int = 0) -> list[Gold]:
    """A line of links a sentence pair: ``i-j`` sure, ``ipj`` possible.

    Args:
        lines: of the file.
        name: what to call it in an error.
        first: the number that the file gives the first word of a line, 0 or 1.

    Raises:
        DataError: for what is no link, with its line.
    """
    gold = []
    for links in _parsed(lines, name, first, possible=True):
        sure = frozenset((i, j) for i, mark, j in links if mark == "-")
        gold.append(Gold(sure, frozenset((i, j) for i, _, j in links)))
    return gold


def pharaoh_links(lines: Iterable[str], name: str, *, first: int = 0) -> list[Links]:
    """A line of links ``i-j`` a sentence pair (Pharaoh's form); see ``gold_links``."""
    found = _parsed(lines, name, first, possible=False)
    return [frozenset((i, j) for i, _, j in links) for links in found]


def _parsed(
    lines: Iterable[str], name: str, first: int, *, possible: bool
) -> list[list[tuple[int, str, int]]]:
    rows = []
    for number, line in enumerate(lines, 1):
        row = []
        for word in line.split():
            found = _LINK.fullmatch(word)
            if found is None or (found[2] == "p" and not possible):
                wanted = "3-4 or 3p4" if possible else "3-4"
                raise DataError(f"{name}, line {number}: {word!r} is no link; one is {wanted}")
            link = int(found[1]) - first, found[2], int(found[3]) - first
            if min(link[0], link[2]) < 0:
                raise DataError(
                    f"{name}, line {number}: {word!r} names word 0, but the first word was said to "
                    f"be number {first}"
                )
            row.append(link)
        rows.append(row)
    return rows


def write_links(links: Iterable[tuple[int, int]]) -> str:
    """The line of one sentence pair, in order of the source."""
    return " ".join(f"{i}-{j}" for i, j in sorted(links))


def turned_round(gold: Gold) -> Gold:
    """The same links with the target's word first."""
    sides = (frozenset((j, i) for i, j in links) for links in (gold.sure, gold.possible))
    return Gold(*sides)


def symmetrise(forward: Links, backward: Links, how: Symmetrisation) -> Links:
    """One alignment of two.

    Args:
        forward: from a model that reads the source and writes the target.
        backward: from one that goes the other way, its links turned round to (source, target).
        how: what to make of them.
    """
    both, either = forward & backward, forward | backward
    match how:
        case Symmetrisation.intersection:
            return both
        case Symmetrisation.union:
            return either
        case Symmetrisation.grow_diag:
            return frozenset(_grown(both, either))
        case Symmetrisation.grow_diag_final_and:
            found = _grown(both, either)
            for direction in (forward, backward):
                _finish(found, sorted(direction))
            return frozenset(found)


def _grown(both: Links, either: Links) -> set[tuple[int, int]]:
    """Neighbours of links are taken, and theirs, until nothing changes."""
    found = set(both)
    sources, targets = {i for i, _ in found}, {j for _, j in found}
    while True:
        before = len(found)
        for i, j in sorted(found):
            for down, right in _NEIGHBOURS:
                link = i + down, j + right
                free = link[0] not in sources or link[1] not in targets
                if free and link in either and link not in found:
                    found.add(link)
                    sources.add(link[0])
                    targets.add(link[1])
        if len(found) == before:
            return found


def _finish(found: set[tuple[int, int]], links: Sequence[tuple[int, int]]) -> None:
    sources, targets = {i for i, _ in found}, {j for _, j in found}
    for i, j in links:
        if i not in sources and j not in targets:
            found.add((i, j))
            sources.add(i)
            targets.add(j)
