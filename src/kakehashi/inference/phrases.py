"""Phrases in pieces: the same letters are spelt otherwise after a space than right after others."""

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.rules import Phrase
from kakehashi.inference.terms import whole

_NEUTRAL = "、"
"""What joins with no letter into one piece."""
_CLOSING = frozenset(".,;:!?…%)]}»”’、。，：；！？）］」』】")
"""Marks with no space before them."""


def joined(tokenizer: Tokenizer, text: str, before: str = _NEUTRAL) -> Phrase:
    """The pieces of a phrase that goes on right after ``before``.

    Those of the phrase by itself, where the tokenizer makes one piece across the two.
    """
    head, pieces = tokenizer.encode(before), tokenizer.encode(before + text)
    return tuple(pieces[len(head) :] if pieces[: len(head)] == head else tokenizer.encode(text))


def required_phrase(tokenizer: Tokenizer, text: str) -> Phrase:
    """The pieces of a phrase as a translation has it: a mark such as a full stop joins a word."""
    mark = text.strip()[:1] in _CLOSING
    return joined(tokenizer, text.strip()) if mark else tuple(tokenizer.encode(text))


def spellings(tokenizer: Tokenizer, text: str) -> tuple[Phrase, ...]:
    """The pieces of a phrase after a space, and of one within a word."""
    return tuple(dict.fromkeys((tuple(tokenizer.encode(text)), joined(tokenizer, text.strip()))))


def holds(text: str, phrase: str) -> bool:
    """Whether a phrase stands in a text as a word or words of its own."""
    phrase = phrase.strip()
    at = text.find(phrase)
    while at >= 0 and not whole(text, at, at + len(phrase)):
        at = text.find(phrase, at + 1)
    return at >= 0
