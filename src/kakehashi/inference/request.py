"""What is to be translated: a line, and what its translation has to look like."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Request:
    """A line of source text."""

    text: str
