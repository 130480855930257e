"""What a model can be asked for: sentences with equal tasks can go through it together."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Translating:
    """Translations of texts; None: as the model says."""

    beam: int | None = None
    length_penalty: float | None = None
    n_best: int = 1
    details: bool = False
    """Words with their probabilities and alignments."""


@dataclass(frozen=True)
class Scoring:
    """How probable given translations are."""


@dataclass(frozen=True)
class Aligning:
    """Which words of given translations belong to which words of their sources."""


Task = Translating | Scoring | Aligning
Text = tuple[str, ...]
"""What one sentence of a task is: a text alone, or a source and its target."""
