"""What is to be translated: a line, and what its translation has to look like."""

from collections.abc import Sequence
from dataclasses import dataclass

from kakehashi.data.reading import is_blank
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.rules import Rules
from kakehashi.errors import ConfigError
from kakehashi.symbols import UNK


@dataclass(frozen=True)
class Request:
    """A line of source text, and rules for its translation, as text."""

    text: str
    prefix: str = ""
    """The translation begins so, word for word."""
    required: Sequence[str] = ()
    """Each of these stands in the translation, as a word or words of its own."""
    forbidden: Sequence[str] = ()
    """None of these stands in the translation, at the start of a word or within one."""

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
        prefix, *required = (tuple(tokenizer.encode(t)) for t in (self.prefix, *self.required))
        for phrase, pieces in zip((self.prefix, *self.required), (prefix, *required), strict=True):
            if UNK in pieces:
                raise ConfigError(f"the model's vocabulary lacks a character of {phrase!r}")
        forbidden = tuple(tuple(tokenizer.encode(phrase)) for phrase in self.forbidden)
        for phrase, pieces in zip(self.required, required, strict=True):
            for other, barred in zip(self.forbidden, forbidden, strict=True):
                if Rules(required=(barred,)).missing(pieces) == ():
                    raise ConfigError(f"{phrase!r} is required, and {other!r} in it forbidden")
        return Rules(prefix if self.prefix else (), tuple(required), forbidden)
