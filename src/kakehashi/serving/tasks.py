"""What a model can be asked for: sentences with equal tasks can go through it together."""

from dataclasses import dataclass

from kakehashi.inference.options import Options


@dataclass(frozen=True)
class Translating:
    """Translations of texts."""

    options: Options


@dataclass(frozen=True)
class Scoring:
    """How probable given translations are."""


@dataclass(frozen=True)
class Aligning:
    """Which words of given translations belong to which words of their sources."""


Task = Translating | Scoring | Aligning
Text = tuple[str, ...]
"""What one sentence of a task is: a text alone, or a source and its target."""
