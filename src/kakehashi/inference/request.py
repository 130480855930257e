"""What is to be translated: a line, and what its translation has to look like."""

from collections.abc import Sequence
from dataclasses import dataclass

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.rules import Rules


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
            ConfigError: for phrases that contradict each other, or too many of them.
        """
        return Rules(
            tuple(tokenizer.encode(self.prefix)) if self.prefix else (),
            tuple(tuple(tokenizer.encode(phrase)) for phrase in self.required),
            tuple(tuple(tokenizer.encode(phrase)) for phrase in self.forbidden),
        )
