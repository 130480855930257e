"""What a corpus must hold to: pairs with two sides, and a test set that training never saw."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kakehashi.data.ledger import Action, Ledger, Side
from kakehashi.data.pairs import Pairs
from kakehashi.data.progress import Meter
from kakehashi.data.reading import is_blank
from kakehashi.errors import DataError

Indices = npt.NDArray[np.int64]
Fingerprints = npt.NDArray[np.uint64]

_VALID, _TEST = 1, 2
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff]")
"""What belongs in no sentence: controls, separators of lines and paragraphs, a BOM inside.

And half a surrogate pair, as JSON can have it: UTF-8 can't write it, and the tokenizer takes it for
U+FFFD.
"""


class _Counting(dict[str, bool]):
    """Of each character whether it makes a difference between sentences."""

    def __missing__(self, character: str) -> bool:
        counts = character.isalnum()
        if unicodedata.category(character) in ("Mn", "Mc"):
            counts = "VARIATION SELECTOR" not in unicodedata.name(character, "")
        self[character] = counts
        return counts


_COUNTING = _Counting()


def normalised(sentence: str) -> str:
    """What makes two sentences the same here: NFKC, case folded, only letters, digits and marks.

    Marks combine with letters: many scripts write vowels with them. Variation selectors, which
    choose how a character looks, don't count. A sentence without any of them keeps itself.
    """
    folded = unicodedata.normalize("NFKC", sentence).casefold()
    return "".join(filter(_COUNTING.__getitem__, folded)) or sentence


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
    surrogate = unicodedata.category(character) == "Cs"
    unnamed = "half a surrogate pair" if surrogate else "control character"
    name = unicodedata.name(character, unnamed).lower()
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

    with Meter("Comparing", "sentences", 2 * len(pairs)) as meter:
        keys = [fingerprints(meter.over(side, work=1)) for side in (pairs.source, pairs.target)]
    first, component = _components(*keys)
    order = _drawn(((sides[0][i], sides[1][i]) for i in first.tolist()), seed)
    sizes = np.bincount(component, minlength=len(first))
    split = np.zeros(len(first), np.int8)  # of each component: train, valid or test
    room = [0, n_valid, n_test]
    for chosen in order.tolist():
        size = int(sizes[chosen])
        if size <= room[_TEST]:
            split[chosen] = _TEST
        elif size <= room[_VALID]:
            split[chosen] = _VALID
        room[split[chosen]] -= size
        if not any(room[_VALID:]):
            break
    train, valid, test = (np.flatnonzero(split[component] == k) for k in range(3))
    if (len(test), len(valid)) != (n_test, n_valid) or not len(train):
        raise DataError(
            f"{pairs.origin}: from {len(pairs):,} pairs {n_valid:,} for valid and {n_test:,} for "
            f"test cannot be held out without sharing sentences with train (found {len(valid):,} "
            f"and {len(test):,}, {len(train):,} left to train on); ask for fewer with "
            "data.valid_size=... data.test_size=..., or give the splits as files"
        )
    return Split(*(pairs.select(part) for part in (train, valid, test)))


def fingerprints(sentences: Iterable[str], person: bytes = b"") -> Fingerprints:
    """64 bits that are equal where sentences are the same (`normalised`) and so is `person`.

    In twenty million different sentences two agree by chance once in 100,000 times, and all that
    comes of it is that two pairs are kept in one split, or one pair more counts as an overlap.
    """
    digests = bytearray()
    for sentence in sentences:
        text = normalised(sentence).encode("utf-8", "surrogatepass")
        digests += hashlib.blake2b(text, digest_size=8, person=person).digest()
    return np.frombuffer(digests, "<u8")


def _drawn(pairs: Iterable[tuple[str, str]], seed: int) -> Indices:
    """The order in which components are taken: by the SHA-256 of their first pairs."""
    salt = "" if seed == 0 else f"{seed}\t"
    digests = bytearray()
    for one, other in pairs:
        text = f"{salt}{one}\t{other}".encode("utf-8", "surrogatepass")
        digests += hashlib.sha256(text).digest()
    words = np.frombuffer(digests, ">u8").reshape(-1, 4)
    return np.lexsort(words.T[::-1])


def _components(source: Fingerprints, target: Fingerprints) -> tuple[Indices, Indices]:
    """Pairs joined by shared sentences: the first pair of each component, and each pair's own.

    Connected components of the bipartite graph of sentences: every node takes the least label of
    its neighbours' roots until nothing changes (Shiloach and Vishkin, 1982).
    """
    _, sources = np.unique(source, return_inverse=True)
    _, targets = np.unique(target, return_inverse=True)
    targets = targets + (int(sources.max()) + 1 if len(sources) else 0)
    label = np.arange(int(targets.max()) + 1 if len(targets) else 0)
    while True:
        one, other = label[sources], label[targets]
        if np.array_equal(one, other):
            break
        least = np.minimum(one, other)
        np.minimum.at(label, one, least)
        np.minimum.at(label, other, least)
        while not np.array_equal(label, higher := label[label]):
            label = higher
    _, first, component = np.unique(label[sources], return_index=True, return_inverse=True)
    return first, component


class Sentences(NamedTuple):
    """The fingerprints of a split's sentences."""

    source: Fingerprints
    target: Fingerprints

    @classmethod
    def of(cls, pairs: Pairs) -> "Sentences":
        """Those of these pairs, in their order."""
        return cls(fingerprints(pairs.source), fingerprints(pairs.target))


def overlaps(train: Pairs, held_out: Sequence[Pairs | Sentences]) -> list[dict[int, Side]]:
    """Training pairs of which a (normalised) sentence stands on the same side of a held-out split.

    Returns, for each of the splits, the index of each such training pair and the side.
    """
    if not held_out:
        return []
    known = Sentences.of(train)
    return [
        _shared(known, other if isinstance(other, Sentences) else Sentences.of(other))
        for other in held_out
    ]


def _shared(known: Sentences, held_out: Sentences) -> dict[int, Side]:
    in_source = np.isin(known.source, held_out.source)
    in_target = np.isin(known.target, held_out.target)
    found: dict[int, Side] = {}
    for i in np.flatnonzero(in_source | in_target).tolist():
        side = sides(bool(in_source[i]), bool(in_target[i]))
        assert side is not None
        found[i] = side
    return found
