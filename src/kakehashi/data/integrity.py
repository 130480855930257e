"""What a corpus must hold to: pairs with two sides, and a test set that training never saw."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from kakehashi.data.ledger import Action, Ledger, Side
from kakehashi.data.pairs import Pairs
from kakehashi.data.reading import is_blank
from kakehashi.errors import DataError

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
"""What belongs in no sentence: controls, separators of lines and paragraphs, a BOM inside."""


def normalised(sentence: str) -> str:
    """What makes two sentences the same here: NFKC, case folded, letters and digits only.

    A sentence without any keeps itself.
    """
    folded = unicodedata.normalize("NFKC", sentence).casefold()
    return "".join(filter(str.isalnum, folded)) or sentence


def enter_blank(pairs: Pairs, split: str, ledger: Ledger, action: Action) -> list[int]:
    """Enter the pairs of which a side is blank into the ledger; returns the indices of the rest."""
    others = []
    for i, (source, target) in enumerate(zip(pairs.source, pairs.target, strict=True)):
        side = sides(is_blank(source), is_blank(target))
        if side is None:
            others.append(i)
        else:
            ledger.add(split, *pairs.place(i), side, "blank side", action)
    return others


def drop_blank(pairs: Pairs, split: str, ledger: Ledger) -> Pairs:
    """Without the pairs of which a side is blank; both sides go together, into the ledger."""
    kept = enter_blank(pairs, split, ledger, "left out")
    return pairs if len(kept) == len(pairs) else pairs.select(kept)


def enter_controls(pairs: Pairs, split: str, ledger: Ledger) -> None:
    """Enter the pairs that hold NUL, TAB, U+2028 and the like, which stay as they are."""
    for i, (source, target) in enumerate(zip(pairs.source, pairs.target, strict=True)):
        if source.isprintable() and target.isprintable():
            continue
        found = [set(_CONTROLS.findall(text)) for text in (source, target)]
        for character in sorted(found[0] | found[1]):
            side = sides(*(character in characters for characters in found))
            assert side is not None
            ledger.add(split, *pairs.place(i), side, _called(character), "kept")


def _called(character: str) -> str:
    name = unicodedata.name(character, "control character").lower()
    return f"{name} U+{ord(character):04X}"


def sides(source: bool, target: bool) -> Side | None:
    """The side, or both, of which something is true."""
    if source:
        return "both" if target else "source"
    return "target" if target else None


@dataclass
class Split:
    """Train, valid and test of which no two share a source or a target sentence."""

    train: Pairs
    valid: Pairs
    test: Pairs


def split_pairs(
    pairs: Pairs, n_valid: int, n_test: int, seed: int = 0, *, target_first: bool = False
) -> Split:
    """Hold out exactly `n_test` and `n_valid` pairs so that no sentence of theirs is in train.

    Pairs that share a (normalised) source or target sentence are joined; the connected components
    of that bipartite graph go whole to one split. They are taken in the order of the SHA-256 of
    their first pair (with the seed ahead unless it is 0): to test while they fit, else to valid,
    else to train. Each split keeps the order of `pairs`. With `target_first` the hash reads the
    target before the source, so that a corpus and its mirror image are split alike.

    Raises DataError, with the counts, when the corpus is too small.
    """
    sides = (pairs.target, pairs.source) if target_first else (pairs.source, pairs.target)

    def order(component: list[int]) -> bytes:
        first = "\t".join(side[component[0]] for side in sides)
        salted = first if seed == 0 else f"{seed}\t{first}"
        return hashlib.sha256(salted.encode("utf-8", "surrogatepass")).digest()

    train: list[int] = []
    valid: list[int] = []
    test: list[int] = []
    for component in sorted(_components(pairs), key=order):
        if len(test) + len(component) <= n_test:
            test += component
        elif len(valid) + len(component) <= n_valid:
            valid += component
        else:
            train += component
    if (len(test), len(valid)) != (n_test, n_valid) or not train:
        raise DataError(
            f"{pairs.origin}: from {len(pairs):,} pairs {n_valid:,} for valid and {n_test:,} for "
            f"test cannot be held out without sharing sentences with train (found {len(valid):,} "
            f"and {len(test):,}, {len(train):,} left to train on); ask for fewer with "
            "data.valid_size=... data.test_size=..., or give the splits as files"
        )
    return Split(*(pairs.select(sorted(part)) for part in (train, valid, test)))


def _components(pairs: Pairs) -> Iterable[list[int]]:
    """Indices of pairs joined by shared sentences, each component in rising order."""
    parent: list[int] = []

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    def nodes(sentences: list[str]) -> list[int]:
        known: dict[str, int] = {}
        numbers = []
        for sentence in sentences:
            key = normalised(sentence)
            if key not in known:
                known[key] = len(parent)
                parent.append(len(parent))
            numbers.append(known[key])
        return numbers

    sources, targets = nodes(pairs.source), nodes(pairs.target)
    for source, target in zip(sources, targets, strict=True):
        parent[root(source)] = root(target)
    components: dict[int, list[int]] = {}
    for i, source in enumerate(sources):
        components.setdefault(root(source), []).append(i)
    return components.values()


def overlaps(train: Pairs, held_out: Pairs) -> dict[int, Side]:
    """Training pairs of which a (normalised) sentence stands on the same side of `held_out`.

    Returns the index of each such training pair and the side.
    """
    held_sources = set(map(normalised, held_out.source))
    held_targets = set(map(normalised, held_out.target))
    found: dict[int, Side] = {}
    for i, (source, target) in enumerate(zip(train.source, train.target, strict=True)):
        side = sides(normalised(source) in held_sources, normalised(target) in held_targets)
        if side is not None:
            found[i] = side
    return found
