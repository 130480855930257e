"""Terms: words of a source, and the words that its translation has to have for them."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Self

from kakehashi.data.reading import expand, read_lines
from kakehashi.errors import ConfigError, DataError
from kakehashi.inference.links import SPACELESS, in_word


class Term(NamedTuple):
    """Where a text holds a term, and what stands for it."""

    start: int
    end: int
    source: str
    target: str


class Terms:
    """Words or phrases of the source language, each with its translation.

    A term without capital letters is found however the text writes it; one with any only as it is
    written. It is found where it stands as a word or words of its own: no letter or figure goes on
    at its ends, but at those that are of a script without spaces (Han, kana, Thai, ...). Where
    terms overlap the longest counts, the first of equals.
    """

    def __init__(self, terms: Mapping[str, str]) -> None:
        """Raises ConfigError for an empty term or translation."""
        for source, target in terms.items():
            if not source.strip() or not target.strip():
                raise ConfigError(f"a term is empty: {source!r} is to be {target!r}")
        self.terms = {source.strip(): target.strip() for source, target in terms.items()}
        self._lengths = sorted({len(source) for source in self.terms}, reverse=True)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """From a file of lines `term TAB translation`; blank lines don't count.

        Raises:
            DataError: naming file and line, for any other line, or a term with two translations.
        """
        path = expand(path)
        terms: dict[str, tuple[str, int]] = {}
        for number, line in enumerate(read_lines(path), 1):
            if not line.strip():
                continue
            source, *rest = (field.strip() for field in line.split("\t"))
            if len(rest) != 1 or not source or not rest[0]:
                raise DataError(
                    f"{path}, line {number}: {line!r} is not a term, a tab and its translation"
                )
            known = terms.setdefault(source, (rest[0], number))
            if known[0] != rest[0]:
                raise DataError(
                    f"{path}, line {number}: {source!r} is to be {rest[0]!r} here and "
                    f"{known[0]!r} in line {known[1]}; a term has one translation"
                )
        return cls({source: target for source, (target, _) in terms.items()})

    def found(self, text: str) -> list[Term]:
        """The terms in a text, in its order, none of them overlapping."""
        matches = []
        for length in self._lengths:
            for start in range(len(text) - length + 1):
                part = text[start : start + length]
                source = part if part in self.terms else part.lower()
                if source in self.terms and whole(text, start, start + length):
                    matches.append(Term(start, start + length, source, self.terms[source]))
        chosen: list[Term] = []
        for match in matches:  # the longest first
            if all(match.end <= other.start or other.end <= match.start for other in chosen):
                chosen.append(match)
        return sorted(chosen)


def whole(text: str, start: int, end: int) -> bool:
    """Whether a part of a text is a word or words of its own."""
    return not any(
        0 < at < len(text)
        and in_word(text[at - 1])
        and in_word(text[at])
        and not SPACELESS.search(text[at - 1 : at + 1])
        for at in (start, end)
    )
