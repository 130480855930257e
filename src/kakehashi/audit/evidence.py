"""Evidence, line by line, that two lines translate each other: lengths, words, punctuation.

Nothing of it knows a language. Words are counted together over all shifts that are looked at, so
that the counts favour none of them.
"""

import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ids = NDArray[np.int32]
Rows = NDArray[np.intp]

_WORD = re.compile(r"\w+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_VOCABULARY = 3000
_PER_LINE = 14
_KEYS_PER_LINE = 6
_COUNTED = 100_000
"""Lines that the associations of words are counted on."""
_AT_A_TIME = 4096
N_FEATURES = 5


def units(line: str) -> list[str]:
    """The words of a line, lower case; pairs of characters where no spaces divide words."""
    found = []
    for word in _WORD.findall(line.casefold()):
        if _UNSPACED.search(word):
            found += [word[i : i + 2] for i in range(max(1, len(word) - 1))]
        else:
            found.append(word)
    return found


@dataclass(frozen=True)
class Side:
    """One side as numbers: row i stands for line i."""

    words: Ids
    """[lines, 14]: its rarest words of the vocabulary; `n_words` fills up."""
    keys: Ids
    """[lines, 6]: its rarest words that may look alike in both languages, by their beginnings."""
    lengths: Floats
    """Standardised logarithms of the lengths in characters."""
    ends: NDArray[np.int8]
    """1 for a question, 2 for an exclamation, 0 otherwise."""
    n_words: int


def read_sides(source: Sequence[str], target: Sequence[str]) -> tuple[Side, Side]:
    """Both sides as numbers."""
    read = [_Words.of(side) for side in (source, target)]
    lines_with = [words.lines_with_keys() for words in read]
    rare = max(3, min(len(source), len(target)) // 50)
    often = {key: max(n, lines_with[1].get(key, 0)) for key, n in lines_with[0].items()}
    shared = [key for key, n in often.items() if key in lines_with[1] and n <= rare]
    # The rarer, the higher the number: what stands first when sorted from above.
    numbers = {key: i for i, key in enumerate(sorted(shared, key=lambda key: (-often[key], key)))}
    # Another filling for each side, so that it equals nothing.
    return read[0].side(source, numbers, filling=-1), read[1].side(target, numbers, filling=-2)


@dataclass(frozen=True)
class _Words:
    """The distinct words of each line, numbered in the order in which they first occur."""

    vocabulary: list[str]
    words: Ids
    """All lines after one another."""
    lines: Ids
    """The line of each."""

    @classmethod
    def of(cls, lines: Sequence[str]) -> "_Words":
        index: dict[str, int] = {}
        words, counts = array("i"), array("i")
        for line in lines:
            found = {index.setdefault(word, len(index)): None for word in units(line)}
            words.extend(found)
            counts.append(len(found))
        rows = np.repeat(np.arange(len(counts), dtype=np.int32), np.array(counts, np.int32))
        return cls(list(index), np.array(words, np.int32), rows)

    def lines_with_keys(self) -> dict[str, int]:
        """How many lines have a word with each key, but for words that repeat a key in a line."""
        counts = np.bincount(self.words, minlength=len(self.vocabulary)).tolist()
        found: dict[str, int] = {}
        for word, n in zip(self.vocabulary, counts, strict=True):
            if key := _key(word):
                found[key] = found.get(key, 0) + n
        return found

    def side(self, lines: Sequence[str], keys: dict[str, int], filling: int) -> Side:
        """The rarest words of each line, and those of its keys that are numbered in `keys`."""
        n = len(lines)
        counts = np.bincount(self.words, minlength=len(self.vocabulary))
        frequent = np.argsort(-counts, kind="stable")
        kept = frequent[(counts[frequent] >= 2) & (counts[frequent] <= 0.3 * n)][:_VOCABULARY]
        ranks = np.full(len(counts), -1, np.int32)
        ranks[kept] = np.arange(len(kept), dtype=np.int32)
        key_numbers = np.array([keys.get(_key(word), -1) for word in self.vocabulary], np.int32)
        return Side(
            _highest(self.lines, ranks[self.words], n, _PER_LINE, len(kept)),
            _highest(self.lines, key_numbers[self.words], n, _KEYS_PER_LINE, filling),
            _standardised(lines),
            np.fromiter(map(_end, lines), np.int8, n),
            len(kept),
        )


def _highest(lines: Ids, values: Ids, n_lines: int, n: int, filling: int) -> Ids:
    """[lines, n]: the highest values of each line that are not negative; `filling` fills up."""
    kept = values >= 0
    lines, values = lines[kept], values[kept]
    order = np.lexsort((-values, lines))
    lines, values = lines[order], values[order]
    place = np.arange(len(lines)) - np.searchsorted(lines, np.arange(n_lines))[lines]
    found = np.full((n_lines, n), filling, np.int32)
    first = place < n
    found[lines[first], place[first]] = values[first]
    return found


def _key(word: str) -> str:
    """What a name, number or cognate has in common with its translation; empty for short words."""
    if word.isdecimal():
        return str(int(word)) if len(word) < 20 else word
    return word[:5] if len(word) >= 4 else ""


def _end(line: str) -> int:
    last = line.rstrip(" \"'»”’」』)]}\t")[-1:]
    if last in ("?", "？", "؟", ";", "\u037e"):
        return 1
    return 2 if last in ("!", "！") else 0


def _standardised(lines: Iterable[str]) -> Floats:
    logs = np.log1p(np.array([len(line) for line in lines], np.float32))
    centre = np.median(logs)
    spread = max(0.1, float(np.median(np.abs(logs - centre))) / 0.6745)
    return np.asarray(np.clip((logs - centre) / spread, -3, 3), np.float32)


def shifted(source: Side, target: Side, shift: int, rows: Rows) -> tuple[Rows, Rows]:
    """The rows of `source` whose row `i + shift` of `target` exists, and those rows of `target`."""
    kept = rows[(rows + shift >= 0) & (rows + shift < len(target.lengths))]
    return kept, kept + shift


def association(source: Side, target: Side, shifts: Sequence[int]) -> Floats:
    """[source words + 1, target words + 1]: how much more often two words meet than by chance.

    log (n + 1) / (e + 1), at least 0, for n meetings and e expected ones, within the shifts that
    are looked at together. The last row and column stand for no word.
    """
    wide = target.n_words + 1
    counts = np.zeros((source.n_words + 1) * wide, np.float32)
    rows = _sample(len(source.lengths))
    for shift in shifts:
        here, there = shifted(source, target, shift, rows)
        for start in range(0, len(here), _AT_A_TIME * 4):
            part = slice(start, start + _AT_A_TIME * 4)
            cells = _cells(source.words[here[part]], target.words[there[part]], wide)
            # Of the counts' own type: another one takes numpy's slow path.
            np.add.at(counts, cells.ravel(), np.float32(1))
    n = counts.reshape(-1, wide)
    n[-1], n[:, -1] = 0, 0
    lines = target.words[rows[rows < len(target.lengths)]]
    of_source = np.bincount(source.words[rows].ravel(), minlength=source.n_words + 1)
    of_target = np.bincount(lines.ravel(), minlength=wide)
    expected = np.outer(of_source, of_target).astype(np.float32)
    expected *= np.float32(len(shifts) / max(1, len(rows)))
    found = np.log((n + 1) / (expected + 1))
    np.maximum(found, 0, out=found)
    found[-1], found[:, -1] = 0, 0
    return np.asarray(found, np.float32)


def _cells(source: Ids, target: Ids, wide: int) -> Ids:
    """[lines, words, words]: where each two words of two lines meet in a flattened table."""
    return np.asarray(source[:, :, None] * np.int32(wide) + target[:, None, :], np.int32)


def _sample(n: int) -> Rows:
    """All lines, or as many as are counted, in stretches spread over the whole."""
    if n <= _COUNTED:
        return np.arange(n)
    stretch = 1000
    starts = np.linspace(0, n - stretch, _COUNTED // stretch).astype(np.intp)
    return np.asarray((starts[:, None] + np.arange(stretch)).ravel(), np.intp)


def features(
    source: Side,
    target: Side,
    associated: Floats,
    here: Rows,
    there: Rows,
) -> Floats:
    """[lines, 5] for the rows `here` of the source against the rows `there` of the target."""
    found = np.empty((len(here), N_FEATURES), np.float32)
    for start in range(0, len(here), _AT_A_TIME):
        part = slice(start, start + _AT_A_TIME)
        s, t = source.words[here[part]], target.words[there[part]]
        table = associated.ravel().take(_cells(s, t, target.n_words + 1))
        for_source = table.max(2).sum(1) / np.maximum(1, (s < source.n_words).sum(1))
        for_target = table.max(1).sum(1) / np.maximum(1, (t < target.n_words).sum(1))
        found[part, 0] = for_source + for_target
        keys = source.keys[here[part]][:, :, None] == target.keys[there[part]][:, None, :]
        found[part, 1] = np.minimum(3, keys.sum((1, 2)))
    a, b = source.lengths[here], target.lengths[there]
    found[:, 2], found[:, 3] = a * b, a * a + b * b
    ends, other = source.ends[here], target.ends[there]
    found[:, 4] = np.where(ends == other, np.where(ends > 0, 1.0, 0.0), -1.0)
    return found
