"""From what a search found for a line to its translation as text."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.methods import DiverseBeam, Sampling
from kakehashi.inference.alignment import Pairs, piece_alignment, word_alignment
from kakehashi.inference.engine import Followed
from kakehashi.inference.line_words import line_words, piece_words
from kakehashi.inference.lines import Line, Part
from kakehashi.inference.links import word_links
from kakehashi.inference.options import Options
from kakehashi.inference.phrases import holds
from kakehashi.inference.placeholders import PLACEHOLDER, changed_placeholders
from kakehashi.inference.placing import Link, put_back
from kakehashi.inference.sentences import joint, without_spaces
from kakehashi.inference.settings import BundleConfig
from kakehashi.inference.spelling import Spelled, copy_unknown, spelled_source, spelled_translation
from kakehashi.inference.symbols import changed_symbols
from kakehashi.inference.translation import BLANK, Candidate, Translation, join_parts, one_line
from kakehashi.symbols import EOS, UNK

if TYPE_CHECKING:
    from kakehashi.decoding.hypothesis import Hypothesis


class Writer:
    """Writes translations of a model's lines, as the options ask."""

    def __init__(self, tokenizer: Tokenizer, config: BundleConfig, options: Options) -> None:
        self.tokenizer, self.config, self.options = tokenizer, config, options
        names = tokenizer.settings.symbols
        self._symbols = dict(zip(tokenizer.symbol_numbers(), names, strict=True))
        self._spaced = not without_spaces(config.target_language)

    def looks(self, lines: Sequence[Line], found: Sequence["Hypothesis"]) -> bool:
        """Whether translations of a part, of these lines, have to be read once more."""
        return (
            self.options.details
            or any(line.marked.elements for line in lines)
            or (self.options.copy_unknown and any(UNK in hypothesis.ids for hypothesis in found))
        )

    def translation(self, line: Line) -> Translation:
        """A line of which every part has been found."""
        if not line.parts:
            return self._blank(line)
        found = [self._candidates(line, number) for number in range(len(line.parts))]
        joints = [joint(gap, self.config.target_language) for gap in line.gaps]
        ranked = not isinstance(self.options.method, DiverseBeam | Sampling)
        best = join_parts(found, self.options.n_best, joints, ranked)
        warnings = (
            *line.warnings(self.config.max_length),
            *self._changed(line, best[0].text),
            *_forbidden(line, best),
        )
        if line.marked.elements:
            best = tuple(self._tagged(line, candidate) for candidate in best)
        # Of pieces, gaps and tags: whatever a line holds, its translation is one line.
        best = tuple(replace(candidate, text=one_line(candidate.text)) for candidate in best)
        tokens: tuple[str, ...] = ()
        if self.options.details:
            tokens = tuple(chain.from_iterable(self.tokens(part.row) for part in line.parts))
        first = best[0]
        return Translation(first.text, first.score, best, warnings, tokens, line.seconds)

    def _blank(self, line: Line) -> Translation:
        """A line with nothing to translate, but tags perhaps."""
        text = one_line(line.marked.line) if line.marked.elements else ""
        warnings: tuple[str, ...] = ()
        if line.request.prefix or line.request.required:
            warnings = (
                f"line {line.number} has nothing to translate: its translation has no prefix, and "
                "none of the required phrases",
            )
        return replace(BLANK, text=text, hypotheses=(Candidate(text, 0.0, 0.0),), warnings=warnings)

    def tokens(self, row: Sequence[int]) -> tuple[str, ...]:
        """The pieces of a text, and EOS."""
        return tuple(self.tokenizer.pieces([*row, EOS]))

    def _candidates(self, line: Line, number: int) -> list[Candidate]:
        """The n-best list of a part."""
        part = line.parts[number]
        start = sum(len(before.row) + 1 for before in line.parts[:number])
        sources = self._source_words(line, part) if self.options.details else []
        return [
            self._candidate(line, part, start, sources, hypothesis, followed)
            for hypothesis, followed in zip_longest(line.found[number], line.read[number])
        ]

    def _candidate(
        self,
        line: Line,
        part: Part,
        start: int,
        sources: list[tuple[int, ...]],
        hypothesis: "Hypothesis",
        followed: Followed | None,
    ) -> Candidate:
        spelled, links = self._spelled(line, part, hypothesis, followed)
        told: tuple[tuple[str, ...], tuple[float, ...], Pairs, Pairs] = ((), (), (), ())
        if self.options.details and followed is not None:
            end = len(hypothesis.ids) + hypothesis.finished
            pairs = _pairs(followed)
            told = (
                self.tokens(hypothesis.ids)[:end],
                followed.log_probabilities[:end],
                tuple((start + i, j) for i, j in pairs),
                word_alignment(pairs, sources, self._written_words(hypothesis.ids, spelled)),
            )
        return Candidate(spelled.text, hypothesis.score, hypothesis.log_probability, *told, links)

    def _source_words(self, line: Line, part: Part) -> list[tuple[int, ...]]:
        """The words of the line that each piece of one of its parts is in."""
        words = line_words(line.marked.plain)[part.start :]
        pieces, spans = self.tokenizer.pieces(part.row), self.tokenizer.encode_spans(part.text)
        return piece_words(pieces, spans, words)

    def _written_words(self, ids: Sequence[int], spelled: Spelled) -> list[tuple[int, ...]]:
        """The words of its translation that each piece is in."""
        return piece_words(self.tokenizer.pieces(ids), spelled.pieces, line_words(spelled.text))

    def _spelled(
        self, line: Line, part: Part, hypothesis: "Hypothesis", followed: Followed | None
    ) -> tuple[Spelled, tuple[Link, ...]]:
        """What a hypothesis says, and if the line has tags, its words and those of the line."""
        if followed is None:
            text = one_line(self.tokenizer.decode(hypothesis.ids))
            return Spelled(text, (), ()), ()
        assert followed.attention is not None  # asked for
        source = spelled_source(self.tokenizer, part.text, part.row)
        spelled = spelled_translation(self.tokenizer, hypothesis.ids)
        if self.options.copy_unknown:
            spelled = copy_unknown(spelled, source, followed.attention)
        if not line.marked.elements:
            return spelled, ()
        links = word_links(
            *(spelled.text, spelled.pieces, source.text, source.pieces),
            followed.attention,
            (PLACEHOLDER, *self.options.kept),
        )
        return spelled, tuple(link.moved_source(part.start) for link in links)

    def _tagged(self, line: Line, candidate: Candidate) -> Candidate:
        text = put_back(line.marked, candidate.text, candidate.links, self._spaced)
        return replace(candidate, text=text, links=())

    def _changed(self, line: Line, text: str) -> tuple[str, ...]:
        """Warnings of what the best translation lacks, or has too much of."""
        rows = (part.row for part in line.parts)
        firsts = (line.found[number][0].ids for number in range(len(line.parts)))
        terms = [term for part in line.parts for term in part.terms if term.target not in text]
        missing = [
            phrase
            for number, part in enumerate(line.parts)
            for phrase in part.asked.missing(line.found[number][0].ids)
        ]
        changed = [
            changed_symbols(chain(*rows), chain(*firsts), self._symbols),
            changed_placeholders(
                line.marked.plain, text, self.options.kept, self._symbols.values()
            ),
            *(f"lacks {term.target!r} for {term.source!r}" for term in dict.fromkeys(terms)),
        ]
        if missing:
            phrases = ", ".join(repr(self.tokenizer.decode(phrase)) for phrase in missing)
            changed.append(f"lacks the required {phrases}: there was no room for it")
        return tuple(
            f"line {line.number}: the translation {change}" for change in changed if change
        )


def _forbidden(line: Line, candidates: Sequence[Candidate]) -> Iterator[str]:
    """Warnings of forbidden phrases that came out all the same, in other pieces than are barred."""
    for number, candidate in enumerate(candidates, 1):
        for phrase in line.request.forbidden:
            if holds(candidate.text, phrase):
                which = "the translation" if number == 1 else f"translation {number}"
                yield f"line {line.number}: {which} has the forbidden {phrase!r} in other pieces"


def _pairs(followed: Followed) -> Pairs:
    assert followed.attention is not None  # asked for
    return piece_alignment(followed.attention)
