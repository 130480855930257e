"""Inline tags of a line: taken out before it is translated.

What counts as a tag: ``<name>``, ``</name>`` and ``<name/>``, with attributes that have values, and
comments. ``a < b`` is text, and so is anything else that looks like no tag. Where there are tags,
references such as ``&amp;`` and ``&#8211;`` are the characters that they stand for.
"""

import html
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from kakehashi.data.reading import is_blank

_TAG = re.compile(
    r"(?P<comment><!--)"
    r"|<(?P<close>/?)(?P<name>[A-Za-z][\w:.-]*+)"
    r"(?:\s++[\w:@.-]++\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s\"'<>=`]++))*+"
    r"\s*+(?P<single>/?)>"
)
_REFERENCE = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]*|#\d+|#[xX][0-9A-Fa-f]+);")
_ESCAPED = "&<>\"'\xa0"
"""Characters that go out as references if they came in as such."""
_DEEPEST = 100
"""Pairs in each other; tags of those further inside stand alone."""
_VOID = frozenset(("area", "br", "col", "embed", "hr", "img", "input", "source", "track", "wbr"))
"""HTML's elements that never have an end tag."""
_BREAKING = frozenset(
    (
        *("address", "article", "blockquote", "br", "dd", "div", "dl", "dt", "figure", "footer"),
        *("h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "ol", "p", "pre", "section"),
        *("table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"),
    )
)
"""HTML's elements that end a word."""


@dataclass
class Element:
    """A pair of tags, or one that stands alone, and what characters of the plain text it holds."""

    opening: str
    """The tag as it stands in the line; with all that is between if nothing of it is text."""
    closing: str
    start: int
    end: int
    before: bool = False
    """Whether there is white space, or nothing, on the left of a tag that stands alone."""
    after: bool = False
    """And on its right."""
    breaking: bool = False
    """Whether it ends a word."""
    inner: list["Element"] = field(default_factory=list)

    @property
    def alone(self) -> bool:
        """Whether it holds no text."""
        return self.start == self.end


@dataclass(frozen=True)
class Marked:
    """A line without its tags, and the tags."""

    line: str
    """As it was given."""
    plain: str
    """What there is to translate."""
    elements: tuple[Element, ...]
    breaks: tuple[int, ...] = ()
    """Where in the plain text a tag stood that ends a word, and so a sentence."""
    references: Mapping[str, str] = field(default_factory=dict)
    """Characters that were written as references, and how."""

    def escaped(self, text: str) -> str:
        """A text of the translation as it goes between tags."""
        return "".join(self.references.get(c, c) for c in text) if self.references else text


@dataclass(frozen=True)
class _Tag:
    text: str
    name: str
    kind: str
    """open, close or single."""
    start: int
    """In the line."""
    end: int


def take_out(line: str, symbols: Collection[str] = ()) -> Marked:
    """Separate the tags of a line from its text.

    A tag without its other half stands alone, and so does each of two pairs' tags that would
    cross, or that have a hundred pairs around them. A space is left where a tag stood between two,
    and where one that ends a word (``<br>``, ``</li>``) stood between letters.

    Args:
        line: text with tags.
        symbols: tags to leave where they are, since the model has them as symbols.
    """
    tags = [tag for tag in _tags(line) if tag.text not in symbols]
    if not tags:
        return Marked(line, line, ())
    plain, places, references = _plain(line, tags)
    breaks = [place for tag, place in zip(tags, places, strict=True) if tag.name in _BREAKING]
    elements = tuple(_tree(line, plain, tags, places))
    return Marked(line, plain, elements, tuple(breaks), references)


def _tags(line: str) -> list[_Tag]:
    found, at = list[_Tag](), 0
    last = line.rfind("-->")
    while match := _TAG.search(line, at):
        at = match.end()
        if match["comment"]:
            if at <= last:  # or it has no end, and the search for one would start anew at each
                start, at = match.start(), line.index("-->", at) + len("-->")
                found.append(_Tag(line[start:at], "", "single", start, at))
            continue
        name = match["name"].lower()
        single = match["single"] or (name in _VOID and not match["close"])
        kind = "single" if single else "close" if match["close"] else "open"
        found.append(_Tag(match[0], name, kind, *match.span()))
    return found


def _plain(line: str, tags: list[_Tag]) -> tuple[str, list[int], dict[str, str]]:
    """The text without tags, the place of each tag in it, and what references stood for."""
    references: dict[str, str] = {}

    def character(match: re.Match[str]) -> str:
        text = html.unescape(match[0])
        if len(text) == 1 and text in _ESCAPED:
            references.setdefault(text, match[0])
        return text

    plain, places, at = "", [], 0
    broken = False
    for tag in [*tags, None]:
        piece = line[at : tag.start if tag else len(line)]
        text = _REFERENCE.sub(character, piece)
        if at and (not plain or plain[-1].isspace()):
            text = text.lstrip()
        elif broken and text and not text[0].isspace() and plain:
            text = " " + text
        plain += text
        broken = False if text else broken
        if tag:
            places.append(len(plain))
            broken = broken or tag.name in _BREAKING
            at = tag.end
    kept = plain.rstrip()
    return kept, [min(place, len(kept)) for place in places], references


def _tree(line: str, plain: str, tags: list[_Tag], places: list[int]) -> list[Element]:
    """Elements that hold each other as the tags do; neighbours that hold no text become one."""
    partner = _partners(tags)
    top: list[Element] = []
    around = [top]
    for number, (tag, place) in enumerate(zip(tags, places, strict=True)):
        other = partner.get(number)
        if other is None:
            _add(around[-1], _alone(line, tag, place))
        elif other > number:
            around[-1].append(Element(tag.text, tags[other].text, place, places[other]))
            around.append(around[-1][-1].inner)
        else:
            around.pop()
            element = around[-1].pop()
            if is_blank(plain[element.start : element.end]):
                first = tags[other]
                both = replace(tag, text=line[first.start : tag.end], start=first.start)
                element = _alone(line, both, element.start)
            _add(around[-1], element)
    return top


def _partners(tags: list[_Tag]) -> dict[int, int]:
    """The other half of each tag that has one."""
    partner: dict[int, int] = {}
    waiting: list[int] = []
    named = Counter[str]()  # of those that wait
    for number, tag in enumerate(tags):
        if tag.kind == "open":
            waiting.append(number)
            named[tag.name] += 1
        elif tag.kind == "close" and named[tag.name]:
            other = -1
            while other < 0 or tags[other].name != tag.name:
                other = waiting.pop()
                named[tags[other].name] -= 1
            partner |= {number: other, other: number}
    depth = 0
    for number in sorted(partner):
        opening = number < partner[number]
        depth += opening
        if depth > _DEEPEST:
            del partner[number]
        depth -= not opening
    return partner


def _alone(line: str, tag: _Tag, place: int) -> Element:
    before, after = line[: tag.start][-1:], line[tag.end : tag.end + 1]
    return Element(
        *(tag.text, "", place, place),
        before=not before or before.isspace(),
        after=not after or after.isspace(),
        breaking=tag.name in _BREAKING,
    )


def _add(elements: list[Element], element: Element) -> None:
    """Add an element; one that holds no text joins one before it at the same place."""
    last = elements[-1] if elements else None
    if not (last and last.alone and element.alone and last.start == element.start):
        elements.append(element)
        return
    last.opening += " " * (last.after or element.before) + element.opening
    last.after = element.after
    last.breaking = last.breaking or element.breaking
