"""What one sentence's translation must begin with, must hold, and must not hold."""

from dataclasses import dataclass

from kakehashi.errors import ConfigError
from kakehashi.symbols import BOS, EOS, PAD

Phrase = tuple[int, ...]
"""Vocabulary entries in a row. A phrase has many spellings in pieces; a rule knows the given one,
and others are given beside it."""

MOST_REQUIRED = 8
"""Required phrases a sentence may have."""


@dataclass(frozen=True)
class Rules:
    """Rules for the translation of one sentence, in vocabulary entries without BOS and EOS."""

    prefix: Phrase = ()
    """The translation begins so. Where it breaks another rule, the prefix counts."""
    required: tuple[Phrase, ...] = ()
    """The translation holds each of these, in any order; they may overlap, and a phrase that is
    given twice is required once."""
    forbidden: tuple[Phrase, ...] = ()
    """The translation holds none of these."""

    def __post_init__(self) -> None:
        for phrase in (*self.required, *self.forbidden):
            if not phrase:
                raise ConfigError("a required or forbidden phrase is empty")
        for phrase in (self.prefix, *self.required, *self.forbidden):
            if reserved := sorted({PAD, BOS, EOS}.intersection(phrase)):
                raise ConfigError(f"a rule names the reserved piece {reserved[0]}: {phrase}")
        if len(self.required) > MOST_REQUIRED:
            raise ConfigError(
                f"{len(self.required)} required phrases; a sentence may have at most "
                f"{MOST_REQUIRED}"
            )
        for wanted in self.required:
            if any(_holds(wanted, phrase) for phrase in self.forbidden):
                raise ConfigError(f"the required phrase {wanted} holds a forbidden one")

    @property
    def empty(self) -> bool:
        """Whether nothing is ruled."""
        return not (self.prefix or self.required or self.forbidden)

    def missing(self, ids: tuple[int, ...]) -> tuple[Phrase, ...]:
        """The required phrases that a translation does not hold."""
        return tuple(phrase for phrase in self.required if not _holds(ids, phrase))


def _holds(ids: Phrase, phrase: Phrase) -> bool:
    places = range(len(ids) - len(phrase) + 1)
    return any(ids[place : place + len(phrase)] == phrase for place in places)
