"""Where the tags of a line go in its translation.

A pair of tags encloses the words of the translation that stand for the words it enclosed in the
line: of all spans of words, one with the most of those and the fewest others, the longest of
equals. A tag alone goes before the word that stands for the word after it, or behind the one for
the word before it, whichever is nearer in the line. Pairs keep to the pairs around them and never
cross.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from kakehashi.inference.markup import Element, Marked


class Link(NamedTuple):
    """A word of a translation and the word of the line that it stands for, as characters."""

    start: int
    end: int
    source_start: int
    source_end: int

    def moved(self, characters: int) -> "Link":
        """The same in a translation with so many characters put ahead."""
        return self._replace(start=self.start + characters, end=self.end + characters)

    def moved_source(self, characters: int) -> "Link":
        """The same in a line with so many characters put ahead."""
        start, end = self.source_start + characters, self.source_end + characters
        return self._replace(source_start=start, source_end=end)


class _Placed(NamedTuple):
    element: Element
    start: int
    """The first word in it, or the word that it stands before."""
    end: int
    """The first word behind it."""
    inner: "list[_Placed]"


def put_back(marked: Marked, text: str, links: Sequence[Link], spaced: bool) -> str:
    """A translation with the tags of its line: each once, nested as in the line.

    Args:
        marked: the line.
        text: the translation of ``marked.plain``.
        links: of the words in it, in their order.
        spaced: whether the language of the translation puts spaces between words.
    """
    if not marked.elements:
        return marked.escaped(text)
    links = _divided(marked, text, links)
    placed = _place_all(marked.elements, links, 0, len(links))
    return _Writer(marked, text, links, " " if spaced else "").written(placed)


def _divided(marked: Marked, text: str, links: Sequence[Link]) -> list[Link]:
    """The links; a word that was copied is divided where the line's has a tag (H<sub>2</sub>O)."""
    edges = sorted(set(_edges(marked.elements)))
    divided = []
    for link in links:
        start, end, source_start, source_end = link
        if text[start:end] != marked.plain[source_start:source_end]:
            divided.append(link)
            continue
        inside = [edge - source_start for edge in edges if source_start < edge < source_end]
        for first, last in pairwise((0, *inside, end - start)):
            divided.append(
                Link(start + first, start + last, source_start + first, source_start + last)
            )
    return divided


def _edges(elements: Iterable[Element]) -> Iterator[int]:
    """Where the tags stood."""
    for element in elements:
        yield from (element.start, element.end)
        yield from _edges(element.inner)


def _place_all(
    elements: Sequence[Element], links: Sequence[Link], first: int, last: int
) -> list[_Placed]:
    """Elements side by side, all within the words from ``first`` to before ``last``."""
    free = set(range(first, last))
    placed = []
    for element in elements:
        if element.alone:
            continue
        span = _span(element, links, sorted(free))
        if span is None:  # more pairs than words
            place = _place(element, links, first, last)
            placed.append(_Placed(_emptied(element), place, place, []))
            continue
        free.difference_update(range(*span))
        placed.append(_Placed(element, *span, _place_all(element.inner, links, *span)))
    pairs = [each for each in placed if each.start < each.end]
    placed = [_beside(each, pairs) for each in placed]
    for element in elements:
        if element.alone:
            place = _place(element, links, first, last)
            placed.append(_beside(_Placed(element, place, place, []), pairs))
    # What stands before a word comes before the pair that begins there. The sort is stable.
    placed.sort(key=lambda each: (each.start, each.end > each.start, each.element.start))
    return placed


def _span(element: Element, links: Sequence[Link], free: Sequence[int]) -> tuple[int, int] | None:
    """The words of a pair: the span of free words with the greatest sum of gains."""
    best: tuple[int, int, int] | None = None
    start = total = 0
    for at, word in enumerate(free):
        if at == 0 or free[at - 1] + 1 < word or total < 0:
            start, total = word, 0
        total += 1 if _within(links[word], element) else -1
        found = (total, word + 1 - start, -start)
        if total > 0 and (best is None or found > best):
            best = found
    if best is not None:
        return -best[2], -best[2] + best[1]
    if not free:
        return None
    nearest = min(free, key=lambda word: (_distance(links[word], element), word))
    return nearest, nearest + 1


def _within(link: Link, element: Element) -> bool:
    return link.source_start < element.end and element.start < link.source_end


def _distance(link: Link, element: Element) -> int:
    return max(link.source_start - element.end, element.start - link.source_end, 0)


def _place(element: Element, links: Sequence[Link], first: int, last: int) -> int:
    """The word that a tag alone stands before."""
    following = [
        (links[word].source_start - element.start, word)
        for word in range(first, last)
        if links[word].source_start >= element.start
    ]
    before = [
        (element.start - links[word].source_end, -word)
        for word in range(first, last)
        if links[word].source_end <= element.start
    ]
    if following and (not before or min(following)[0] <= min(before)[0] + 1):
        return min(following)[1]
    return 1 - min(before)[1] if before else last


def _beside(placed: _Placed, pairs: Iterable[_Placed]) -> _Placed:
    """The same, at the nearer edge of a pair that it would stand in."""
    if placed.start < placed.end:
        return placed
    for pair in pairs:
        if pair.start < placed.start < pair.end:
            nearer = min(pair.start, pair.end, key=lambda edge: abs(edge - placed.start))
            return placed._replace(start=nearer, end=nearer)
    return placed


def _emptied(element: Element) -> Element:
    """A pair, and all tags in it, as one that stands alone."""
    tags = "".join(_emptied(inner).opening for inner in element.inner)
    return Element(element.opening + tags + element.closing, "", element.start, element.start)


class _Writer:
    """Writes a translation word by word, with what is between them."""

    def __init__(self, marked: Marked, text: str, links: Sequence[Link], space: str) -> None:
        self.marked, self.text, self.links, self.space = marked, text, links, space

    def written(self, placed: list[_Placed]) -> str:
        """The whole translation."""
        if not self.links:
            return self._alone([each.element for each in placed], "", False, False) + self.text
        first, last = self.links[0].start, self.links[-1].end
        inside = self._words(placed, 0, len(self.links))
        return self._escaped(0, first) + inside + self._escaped(last, len(self.text))

    def _escaped(self, start: int, end: int) -> str:
        return self.marked.escaped(self.text[start:end])

    def _words(self, placed: list[_Placed], first: int, last: int) -> str:
        """The words from ``first`` to before ``last``, and what is placed among them."""
        written = ""
        waiting = list(placed)
        word = first
        while True:
            alone = []
            while waiting and waiting[0].start == waiting[0].end == word:
                alone.append(waiting.pop(0).element)
            inside = first < word < last
            gap = self._gap(word) if inside else ""
            written += self._alone(alone, gap, word > first, word < last) if alone else gap
            if word == last:
                return written
            if waiting and waiting[0].start == word:
                each = waiting.pop(0)
                inner = self._words(each.inner, each.start, each.end)
                written += each.element.opening + inner + each.element.closing
                word = each.end
            else:
                written += self._escaped(*self.links[word][:2])
                word += 1

    def _gap(self, word: int) -> str:
        """What stands before a word."""
        return self._escaped(self.links[word - 1].end, self.links[word].start)

    def _alone(self, elements: list[Element], gap: str, left: bool, right: bool) -> str:
        """Tags that stand alone in a gap, with the white space that they had in the line."""
        space = gap or self.space
        between = self.space * any(each.before or each.after for each in elements)
        tags = between.join(each.opening for each in elements)
        before, after = elements[0].before, elements[-1].after
        if gap and not before and not after and not elements[0].breaking:
            before = True  # or two words would become one
        return space * (left and before) + tags + space * (right and after)
