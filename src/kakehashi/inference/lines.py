"""Lines on their way to a translation: read into pieces, in parts where they are too long."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from kakehashi.data.reading import is_blank
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.rules import MOST_REQUIRED, Phrase, Rules
from kakehashi.inference.markup import Marked, take_out
from kakehashi.inference.options import Options
from kakehashi.inference.parts import parts
from kakehashi.inference.phrases import joined
from kakehashi.inference.placeholders import placeholders
from kakehashi.inference.request import Request
from kakehashi.inference.sentences import sentences, without_spaces
from kakehashi.inference.settings import BundleConfig
from kakehashi.inference.terms import Term
from kakehashi.symbols import UNK

if TYPE_CHECKING:
    from kakehashi.decoding.hypothesis import Hypothesis
    from kakehashi.inference.engine import Followed


@dataclass(frozen=True)
class Part:
    """What is translated by itself: a line, or a part of one."""

    text: str
    start: int
    """Its place in the line's plain text."""
    row: tuple[int, ...]
    """Its pieces, without EOS."""
    asked: Rules
    """What the request asks of its translation."""
    rules: Rules
    """That, and what its placeholders and terms ask."""
    terms: tuple[Term, ...] = ()


@dataclass
class Line:
    """A line on its way: its parts, and what has been found for them."""

    number: int
    """From 1."""
    request: Request
    length: int
    """Pieces of the whole line, EOS included."""
    parts: list[Part]
    """None for a blank line."""
    marked: Marked
    split: bool
    """Whether it was to be translated sentence by sentence."""
    found: dict[int, list["Hypothesis"]] = field(default_factory=dict)
    """The n-best list of each part."""
    read: dict[int, list["Followed"]] = field(default_factory=dict)
    """Each of those followed once more, where that was asked for."""
    seconds: float = 0.0

    @property
    def done(self) -> bool:
        """Whether every part has been translated."""
        return len(self.found) == len(self.parts)

    @property
    def gaps(self) -> list[str]:
        """What stands between its parts."""
        ends = [part.start + len(part.text) for part in self.parts]
        return [
            self.marked.plain[end : part.start]
            for end, part in zip(ends, self.parts[1:], strict=False)
        ]

    def warnings(self, max_length: int) -> tuple[str, ...]:
        """One sentence, if there is something to say; the model was trained on ``max_length``."""
        cut = [best[0] for best in self.found.values() if not best[0].finished]
        several = len(self.parts) > 1
        ending = ""
        if cut and several:
            ending = f"the translation of {len(cut):,} of them did not come to an end and was cut"
        elif cut:
            pieces = len(cut[0].ids)
            ending = f"the translation did not come to an end and was cut after {pieces:,} pieces"
        if self.length <= max_length or (self.split and several):
            of_parts = f"it was translated in {len(self.parts):,} parts; " if several else ""
            return (f"line {self.number}: {of_parts}{ending}",) if ending else ()
        how = f"in {len(self.parts):,} parts, each by itself" if several else "whole"
        return (
            f"line {self.number} has {self.length:,} pieces, the model was trained on at most "
            f"{max_length:,}: it was translated {how}" + (f"; {ending}" if ending else ""),
        )


class Reader:
    """Reads lines for a model, as the options ask."""

    def __init__(self, tokenizer: Tokenizer, config: BundleConfig, options: Options) -> None:
        self.tokenizer, self.config, self.options = tokenizer, config, options
        names = tokenizer.settings.symbols
        self._symbols = dict(zip(names, tokenizer.symbol_numbers(), strict=True))
        self._spaced = not without_spaces(config.target_language)

    def read(self, lines: Sequence[str | Request], first: int) -> list[Line]:
        """Lines that are counted from ``first``, in pieces.

        Raises:
            ConfigError: for rules that contradict each other, or too many of them.
        """
        requests = [Request(line) if isinstance(line, str) else line for line in lines]
        marked = [self._marked(request.text) for request in requests]
        rows = self.tokenizer.encode_batch([each.plain for each in marked])
        return [
            self._line(number, request, each, tuple(row))
            for number, (request, each, row) in enumerate(
                zip(requests, marked, rows, strict=True), first
            )
        ]

    def _marked(self, text: str) -> Marked:
        return take_out(text, self._symbols) if self.options.markup else Marked(text, text, ())

    def _line(self, number: int, request: Request, marked: Marked, row: tuple[int, ...]) -> Line:
        rules, plain = request.rules(self.tokenizer), marked.plain
        line = Line(number, request, len(row) + 1, [], marked, self.options.split)
        if is_blank(plain):
            return line
        # Nobody knows to which part a prefix or a required phrase belongs.
        whole = bool(rules.prefix or rules.required)
        texts = [plain] if whole else self._cut(marked, row)
        if len(texts) == 1:
            line.parts.append(self._part(plain, 0, row, rules))
            return line
        at = 0
        stripped = [text.strip() for text in texts]
        for text, pieces in zip(stripped, self.tokenizer.encode_batch(stripped), strict=True):
            start = plain.index(text, at)
            at = start + len(text)
            line.parts.append(self._part(text, start, tuple(pieces), rules))
        return line

    def _cut(self, marked: Marked, row: Sequence[int]) -> list[str]:
        """The sentences of a text, or it as a whole; cut further where they are too long."""
        if not self.options.split and self._fits(row):
            return [marked.plain]
        edges = pairwise((0, *marked.breaks, len(marked.plain)))
        return [
            part
            for start, end in edges
            for sentence in sentences(marked.plain[start:end], self.config.source_language)
            for part in parts(sentence, lambda text: self._fits(self.tokenizer.encode(text)))
        ]

    def _fits(self, row: Sequence[int]) -> bool:
        return len(row) + 1 <= self.config.max_length

    def _part(self, text: str, start: int, row: tuple[int, ...], rules: Rules) -> Part:
        options = self.options
        terms = tuple(options.terms.found(text)) if options.terms else ()
        wanted = [self._phrase(term.target, "") for term in terms]
        forbidden = list(rules.forbidden)
        if options.placeholders:
            held = {*row, *rules.prefix}.union(*rules.required)
            numbers = self._symbols.values()
            wanted += [(number,) for number in numbers if number in row]
            forbidden += [(number,) for number in numbers if number not in held]
        for match in placeholders(text, options.kept):
            if match[0] not in self._symbols:
                wanted.append(self._phrase(match[0], text[: match.start()][-1:]))
        required = list(rules.required)
        for phrase in dict.fromkeys(wanted):
            room = len(required) < MOST_REQUIRED
            if room and phrase not in required and self._possible(phrase, forbidden):
                required.append(phrase)
        every = replace(rules, required=tuple(required), forbidden=tuple(forbidden))
        return Part(text, start, row, rules, every, terms)

    def _phrase(self, text: str, before: str) -> Phrase:
        """A phrase in pieces: as a word of its own, or joined to punctuation before it.

        Args:
            text: the phrase.
            before: the character before it in the source, if there is one.
        """
        if not self._spaced:
            return joined(self.tokenizer, text)
        if not before or before.isspace() or before.isalnum():
            return tuple(self.tokenizer.encode(text))
        return joined(self.tokenizer, text, before)

    def _possible(self, phrase: Phrase, forbidden: Sequence[Phrase]) -> bool:
        """Whether a phrase can be required: nothing in it is unknown or forbidden."""
        if not phrase or UNK in phrase:
            return False
        return all(Rules(required=(bad,)).missing(phrase) for bad in forbidden)
