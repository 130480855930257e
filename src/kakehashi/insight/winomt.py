"""Sentences in which a pronoun means one of two people: WinoMT's, read and resolved.

Stanovsky, Smith and Zettlemoyer (2019), "Evaluating Gender Bias in Machine Translation". A line of
the file is gender, the number of the entity's word (white space divides, from 0), the sentence, and
the entity, with TABs between. The other person is not named there: it is the one other entity of
the file that the sentence mentions. What cannot be resolved like this is counted, not guessed.
"""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kakehashi.data.reading import read_lines
from kakehashi.errors import DataError
from kakehashi.inference.line_words import line_words

PRONOUNS = {
    "male": {"he", "him", "his", "himself"},
    "female": {"she", "her", "hers", "herself"},
    "neutral": {"they", "them", "their", "theirs", "themself", "themselves"},
}
MALE = frozenset(
    {
        "driver",
        "supervisor",
        "janitor",
        "cook",
        "mover",
        "laborer",
        "construction worker",
        "chief",
        "developer",
        "carpenter",
        "manager",
        "lawyer",
        "farmer",
        "salesperson",
        "physician",
        "guard",
        "analyst",
        "mechanic",
        "sheriff",
        "CEO",
    }
)
FEMALE = frozenset(
    {
        "attendant",
        "cashier",
        "teacher",
        "nurse",
        "assistant",
        "secretary",
        "auditor",
        "cleaner",
        "receptionist",
        "clerk",
        "counselor",
        "designer",
        "hairdresser",
        "writer",
        "housekeeper",
        "baker",
        "accountant",
        "editor",
        "librarian",
        "tailor",
    }
)
"""Zhao et al. (2018), "Gender Bias in Coreference Resolution" (WinoBias): the 20 occupations of
theirs that fewer women have and the 20 that more have, by the US Bureau of Labor Statistics of
2017. Other people have no stereotype here."""
_WORD = re.compile(r"[^\W_]+")
_ARTICLES: tuple[set[str], ...] = ({"the"}, {"a"}, {"an"}, set())


class Span(NamedTuple):
    """Characters of the sentence, the end excluded."""

    start: int
    end: int


@dataclass(frozen=True)
class Question:
    """Whom does this pronoun mean?"""

    line: int
    """From 1."""
    text: str
    gender: str
    pronoun: Span
    right: Span
    wrong: Span
    right_name: str
    wrong_name: str

    @property
    def right_first(self) -> bool:
        """Whether the right person is named before the wrong one."""
        return self.right < self.wrong

    @property
    def right_nearest(self) -> bool | None:
        """Whether the right person's name is nearer to the pronoun; None: both as near."""
        right, wrong = (self._distance(span) for span in (self.right, self.wrong))
        return None if right == wrong else right < wrong

    @property
    def right_subject(self) -> bool | None:
        """Whether the right person is who the sentence opens with; None where it opens otherwise.

        The subject of the main clause, as well as that can be told without a parser.
        """
        first = min(self.right, self.wrong)
        if set(_words(self.text[: first.start])) not in _ARTICLES:
            return None
        return self.right_first

    @property
    def stereotyped(self) -> bool | None:
        """Whether the pronoun fits the stereotype of the right person's job; None: it has none."""
        if self.gender == "neutral" or self.right_name not in MALE | FEMALE:
            return None
        return (self.gender == "male") == (self.right_name in MALE)

    @property
    def frame(self) -> str:
        """How the sentence begins, through the second name: sentences come in variations of it."""
        return " ".join(_words(self.text[: max(self.right, self.wrong).end]))

    @property
    def exchangeable(self) -> bool:
        """Whether both names stand behind "the", so that the sentence stays one without them."""
        return all(
            _words(self.text[: span.start])[-1:] == ["the"] for span in (self.right, self.wrong)
        )

    @property
    def exchanged(self) -> "Question":
        """The same sentence with the two names exchanged; whose place was right is ``right``."""
        first, second = sorted((self.right, self.wrong))
        names = [self.text[slice(*span)] for span in (first, second)]
        moved = len(names[1]) - len(names[0])
        between = self.text[first.end : second.start]
        text = f"{self.text[: first.start]}{names[1]}{between}{names[0]}{self.text[second.end :]}"
        new_first = Span(first.start, first.end + moved)
        new_second = Span(second.start + moved, second.end)
        shift = moved if first.end <= self.pronoun.start < second.start else 0
        pronoun = Span(self.pronoun.start + shift, self.pronoun.end + shift)
        right, wrong = (new_first, new_second) if self.right_first else (new_second, new_first)
        return Question(
            self.line, text, self.gender, pronoun, right, wrong, self.wrong_name, self.right_name
        )

    def _distance(self, span: Span) -> int:
        """Words between a name and the pronoun."""
        start, end = sorted((span, self.pronoun))
        return len(_words(self.text[start.end : end.start]))


class Questions(NamedTuple):
    """What a file asks."""

    resolved: list[Question]
    unresolved: Counter[str]
    """How many lines were left out, by the reason."""


class Unresolved(Exception):  # noqa: N818  a verdict on a line, caught here
    """Why a line is left out."""


def read_questions(path: str | Path) -> Questions:
    """The questions of a file.

    Raises:
        DataError: when it cannot be read, for a line of another form, and where none is resolved.
    """
    rows = [_row(line, f"{path}, line {n}") for n, line in enumerate(read_lines(path), 1)]
    names = sorted({name for *_, name in rows}, key=lambda name: (-len(_words(name)), name))
    resolved, unresolved = [], Counter[str]()
    for number, (gender, index, text, name) in enumerate(rows, 1):
        try:
            resolved.append(_resolve(number, gender, index, text, name, names))
        except Unresolved as reason:
            unresolved[str(reason)] += 1
    if not resolved:
        raise DataError(f"{path}: no line could be resolved: {_reasons(unresolved)}")
    return Questions(resolved, unresolved)


def _reasons(unresolved: Counter[str]) -> str:
    return "; ".join(f"{n:,}: {why}" for why, n in unresolved.most_common()) or "it has none"


def _row(line: str, where: str) -> tuple[str, int, str, str]:
    parts = line.split("\t")
    if len(parts) != 4 or parts[0] not in PRONOUNS or not parts[1].isdecimal():
        raise DataError(
            f"{where}: not gender (male, female, neutral), number of a word, sentence and entity "
            "with TABs between"
        )
    return parts[0], int(parts[1]), parts[2], parts[3]


def _resolve(
    line: int, gender: str, index: int, text: str, name: str, names: list[str]
) -> Question:
    mentions = _mentions(text, names)
    words = line_words(text)
    here = [m for m in mentions if m[1] == name and index in words[slice(*m[0])]]
    if not here:
        raise Unresolved("the number of the word is not the entity's")
    others = {other for _, other in mentions} - {name}
    if not others:
        raise Unresolved("no other entity is named")
    if len(others) > 1:
        raise Unresolved("more than one other entity is named")
    if len(mentions) > 2:
        raise Unresolved("an entity is named twice")
    found = [span for span, word in _spans(text) if word in PRONOUNS[gender]]
    if not found:
        raise Unresolved("no pronoun of the gender")
    if len(found) > 1:
        raise Unresolved("more than one pronoun of the gender")
    (wrong, other) = next(m for m in mentions if m[1] != name)
    return Question(line, text, gender, found[0], here[0][0], wrong, name, other)


def _mentions(text: str, names: list[str]) -> list[tuple[Span, str]]:
    """Every name in the sentence, the longest first where several fit."""
    spans = _spans(text)
    words = [word for _, word in spans]
    free = [True] * len(words)
    found = []
    for name in names:
        wanted = _words(name)
        for at in range(len(words) - len(wanted) + 1):
            here = slice(at, at + len(wanted))
            if words[here] == wanted and all(free[here]):
                free[here] = [False] * len(wanted)
                found.append((Span(spans[at][0].start, spans[here][-1][0].end), name))
    return sorted(found)


def _spans(text: str) -> list[tuple[Span, str]]:
    return [(Span(*found.span()), found[0].lower()) for found in _WORD.finditer(text)]


def _words(text: str) -> list[str]:
    return [word for _, word in _spans(text)]
