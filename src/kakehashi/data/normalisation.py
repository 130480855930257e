"""What a normalisation changes in a corpus, shown before it happens."""

import difflib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import sentencepiece

from kakehashi.data.tokenizer import readable, writable

EXAMPLES = 3
_SEARCHED = 1000
"""Changed sentences among which examples that differ from each other are looked for."""
_AT_A_TIME = 10_000
_SHOWN = 90
"""Characters of a long example."""

Normalise = Callable[[Sequence[str]], list[str]]


@dataclass(frozen=True)
class Change:
    """One sentence, before and after."""

    before: str
    after: str
    characters: list[str]
    """What becomes of which, by code point and name: U+FB01 LATIN SMALL LIGATURE FI -> 'fi'."""


@dataclass(frozen=True)
class NormalisationEffect:
    """How many sentences a normalisation changes, and a few of them."""

    name: str
    sentences: int
    changed: int
    examples: list[Change]
    """At most EXAMPLES, of different characters where there are such."""

    def __str__(self) -> str:
        """One line."""
        if self.name == "identity":
            return "identity (every character is kept)"
        return f"{self.name} (changes {self.changed:,} of {self.sentences:,} training sentences)"

    def report(self) -> str:
        """Some lines for people, the examples included."""
        lines = [f"normalisation: {self}{', for example:' if self.examples else ''}"]
        for example in self.examples:
            before, after = _excerpt(example.before, example.after)
            lines += [f"  before  {before}", f"  after   {after}"]
            lines += [f"          {text}" for text in example.characters]
        return "\n".join(lines)


def normalisation_effect(
    name: str, sentences: Iterable[str], normalise: Normalise | None = None
) -> NormalisationEffect:
    """Count the sentences that the normalisation `name` changes; identity changes none.

    `normalise` is the tokenizer's own, which leaves its symbols alone; without it the rule itself
    is applied, as in a tokenizer without symbols.
    """
    iterator, n, changed = iter(sentences), 0, 0
    if name == "identity":
        return NormalisationEffect(name, sum(1 for _ in iterator), 0, [])
    normalise = normalise or rule(name)
    found: list[tuple[str, str]] = []
    while part := list(islice(iterator, _AT_A_TIME)):
        n += len(part)
        for before, after in zip(part, normalise(part), strict=True):
            if before != after:
                changed += 1
                if len(found) < _SEARCHED:
                    found.append((before, after))
    return NormalisationEffect(name, n, changed, _various(found))


def rule(name: str) -> Normalise:
    """A normalisation as SentencePiece applies it, without a tokenizer."""
    normalizer = sentencepiece.SentencePieceNormalizer(
        rule_name=name, remove_extra_whitespaces=name != "identity"
    )
    return lambda texts: [readable(normalizer.normalize(writable(text, True))) for text in texts]


def changed_characters(before: str, after: str) -> list[str]:
    """What becomes of which characters, each change once."""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    described = {
        f"{_named(before[i:j])} -> {_named(after[k:m])}": None
        for operation, i, j, k, m in matcher.get_opcodes()
        if operation != "equal"
    }
    return list(described)


def _various(found: list[tuple[str, str]]) -> list[Change]:
    """Those whose changes differ from the earlier ones' first, then the others."""
    seen: set[str] = set()
    new: list[Change] = []
    for before, after in found:
        characters = changed_characters(before, after)
        if not seen.issuperset(characters):
            new.append(Change(before, after, characters[:EXAMPLES]))
            seen.update(characters)
        if len(new) == EXAMPLES:
            return new
    shown = {change.before for change in new}
    rest = (pair for pair in found if pair[0] not in shown)
    return [*new, *islice(_changes(rest), EXAMPLES - len(new))]


def _changes(pairs: Iterable[tuple[str, str]]) -> Iterator[Change]:
    for before, after in pairs:
        yield Change(before, after, changed_characters(before, after)[:EXAMPLES])


def _named(text: str) -> str:
    if not text:
        return "nothing"
    if text.isascii() and text.isprintable() and not text.isspace():
        return repr(text)
    return " + ".join(f"U+{ord(c):04X} {unicodedata.name(c, 'without a name')}" for c in text)


def _excerpt(before: str, after: str) -> tuple[str, str]:
    """Both around the first place where they differ, on one line."""
    pairs = enumerate(zip(before, after, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(before), len(after)))
    start = max(0, at - _SHOWN // 2)
    return _shown(before, start), _shown(after, start)


def _shown(text: str, start: int) -> str:
    # In quotes, since spaces at the ends are what some rules change.
    part = text[start : start + _SHOWN]
    visible = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in part)
    return "…" * (start > 0) + f'"{visible}"' + "…" * (start + _SHOWN < len(text))
