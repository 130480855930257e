"""What is to be translated: a line, and what its translation has to look like."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from kakehashi.data.reading import is_blank
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.rules import Rules
from kakehashi.errors import ConfigError
from kakehashi.inference.phrases import holds, required_phrase, spellings
from kakehashi.symbols import UNK


@dataclass(frozen=True)
class Request:
    """A line of source text, and rules for its translation, as text."""

    text: str
    prefix: str = ""
    """The translation begins so, letter for letter; its last word may go on (Cat: Cats)."""
    required: Sequence[str] = ()
    """Each of these stands in the translation, from the start of a word; a last word may go on
    (play: plays). One that begins with a mark such as a full stop stands right after a word."""
    forbidden: Sequence[str] = ()
    """None of these stands in the translation, at the start of a word or within one, in the pieces
    that the tokenizer makes of it there. A model can find others for the same letters: where one
    comes out as a word or words of its own all the same, a warning says so."""

    def rules(self, tokenizer: Tokenizer) -> Rules:
        """The same in pieces.

        Raises:
            ConfigError: for phrases that are blank, contradict each other, have characters that the
                vocabulary lacks, or are too many.
        """
        if not (self.prefix or self.required or self.forbidden):
            return Rules()
        for phrase in (*self.required, *self.forbidden):
            if is_blank(phrase):
                raise ConfigError("a required or forbidden phrase has nothing to be seen")
        prefix = tuple(tokenizer.encode(self.prefix))
        required = tuple(required_phrase(tokenizer, phrase) for phrase in self.required)
        for phrase, pieces in zip((self.prefix, *self.required), (prefix, *required), strict=True):
            if UNK in pieces:
                raise ConfigError(f"the model's vocabulary lacks a character of {phrase!r}")
        forbidden = tuple(spellings(tokenizer, phrase) for phrase in self.forbidden)
        for phrase, pieces in zip(self.required, required, strict=True):
            for other, barred in zip(self.forbidden, forbidden, strict=True):
                barred_in_it = any(Rules(required=(b,)).missing(pieces) == () for b in barred)
                if barred_in_it or holds(phrase, other):
                    raise ConfigError(f"{phrase!r} is required, and {other!r} in it forbidden")
        return Rules(prefix if self.prefix else (), required, tuple(chain(*forbidden)))
