"""What a model can be asked for: sentences with equal tasks can go through it together."""

from dataclasses import dataclass

from kakehashi.inference.options import Options
from kakehashi.inference.request import Request


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


@dataclass(frozen=True)
class Attending:
    """How the model attends while it translates texts."""

    beam: int | None
    """Hypotheses of the search; None: as the model says."""


Task = Translating | Scoring | Aligning | Attending
Pair = tuple[str, str]
Text = Request | Pair
"""What one sentence of a task is: a text to translate, or a source and its target."""


def strings(text: Text) -> tuple[str, ...]:
    """Everything in it that a person wrote."""
    if isinstance(text, Request):
        return (text.text, text.prefix, *text.required, *text.forbidden)
    return text
