"""Translations that are wrong in ways that a score does not tell: loops, copies, nothing at all."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kakehashi.evaluation.words import Words

LONGEST_LOOP = 8
"""Words that are looked for as one repeated unit."""
FEWEST = 4
"""Words of a reference from which on the length of its translation says something."""
_LETTERS = 4
"""Of a word that is not taken for the same in two languages by chance."""
_EXAMPLES = 3
_STUTTER = re.compile(r"([^\W\d_]{1,10}?)\1{4}")
"""Letters five times in a row, as no word has them; digits may."""


@dataclass(frozen=True)
class Sentence:
    """One test sentence, with the words of its translation and its reference."""

    line: int
    """From 1."""
    source: str
    translation: str
    reference: str
    words: tuple[str, ...]
    reference_words: tuple[str, ...]


@dataclass(frozen=True)
class Flaw:
    """How many translations have it, and the first of them."""

    name: str
    means: str
    translations: int
    references: int | None
    """How many references have it, where that can be: what is no mistake there may be none here."""
    lines: tuple[int, ...]
    """Of the first few, from 1."""


def loop(words: Sequence[str]) -> tuple[int, int] | None:
    """The words that are said again right away: how many at a time, and how often, or None.

    What is repeated comes to two words at least (one word three times, two words twice), and has a
    letter or digit. Of several loops it is the one that repeats most words.
    """
    best, most = None, 1
    for unit in range(1, LONGEST_LOOP + 1):
        run = 0
        for place in range(unit, len(words)):
            run = run + 1 if words[place] == words[place - unit] else 0
            repeated = run // unit * unit
            spelled = "".join(words[place - unit + 1 : place + 1])
            if repeated > most and any(map(str.isalnum, spelled)):
                best, most = (unit, run // unit + 1), repeated
    return best


def flaws(sentences: Sequence[Sentence], words: Words) -> list[Flaw]:
    """What is wrong with which sentences, one entry for each kind, also for those without any.

    Args:
        sentences: all of a test set.
        words: of a line in the target language.
    """

    def untranslated(sentence: Sentence) -> bool:
        """Two or more of the long words, and half of them, are the source's and not expected."""
        known, wanted = map(_long, (words(sentence.source), sentence.reference_words))
        long = _long(sentence.words)
        left = (long & known) - wanted
        return len(left) >= 2 and 2 * len(left) >= len(long) and not _copied(sentence)

    kinds: list[tuple[str, str, Callable[[Sentence], bool], Callable[[Sentence], bool] | None]] = [
        ("empty", "nothing was written", lambda s: not s.translation.strip(), _silent),
        (
            "repeats itself",
            "two words or more are said again right away, or letters five times in a row",
            lambda s: _loops(s.translation, s.words),
            lambda s: _loops(s.reference, s.reference_words),
        ),
        ("copy of the source", "the source itself, where the reference is not", _copied, None),
        (
            "partly untranslated",
            "half of its longer words are the source's and not the reference's",
            untranslated,
            None,
        ),
        (
            "too short",
            f"fewer than half the words of a reference of {FEWEST} or more",
            lambda s: _judged(s) and 2 * len(s.words) < len(s.reference_words),
            None,
        ),
        (
            "too long",
            f"more than twice the words of a reference of {FEWEST} or more",
            lambda s: _judged(s) and len(s.words) > 2 * len(s.reference_words),
            None,
        ),
    ]
    found = []
    for name, means, has, reference_has in kinds:
        lines = [s.line for s in sentences if has(s)]
        references = None if reference_has is None else sum(map(reference_has, sentences))
        found.append(Flaw(name, means, len(lines), references, tuple(lines[:_EXAMPLES])))
    return found


def _loops(text: str, words: Sequence[str]) -> bool:
    same = [word.casefold() for word in words]
    return loop(same) is not None or _STUTTER.search(text) is not None


def _silent(sentence: Sentence) -> bool:
    return not sentence.reference.strip()


def _judged(sentence: Sentence) -> bool:
    return len(sentence.reference_words) >= FEWEST


def _copied(sentence: Sentence) -> bool:
    source, translation, reference = map(
        _letters, (sentence.source, sentence.translation, sentence.reference)
    )
    return bool(source) and translation == source != reference


def _long(words: Sequence[str]) -> set[str]:
    return {word.casefold() for word in words if len(word) >= _LETTERS and word.isalpha()}


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))
