"""Tags are taken out of a line and put back into its translation."""

import re
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.inference.links import word_spans
from kakehashi.inference.markup import take_out
from kakehashi.inference.placing import Link, put_back


def copied(line: str) -> str:
    """The line as it comes out if its translation is its own text."""
    marked = take_out(line)
    links = [Link(*span, *span) for span in word_spans(marked.plain)]
    return put_back(marked, marked.plain, links, spaced=True)


def reordered(line: str, text: str, order: list[int]) -> str:
    """The line's tags in a text whose words stand for the words of the line by number."""
    marked = take_out(line)
    spans, source = word_spans(text), word_spans(marked.plain)
    links = [Link(*span, *source[number]) for span, number in zip(spans, order, strict=True)]
    return put_back(marked, text, links, spaced=True)


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        ("Klicken Sie auf <b>Speichern</b>, bitte.", "Klicken Sie auf Speichern, bitte."),
        ('Der <a href="x>y" title=\'"\'>Link</a> hier', "Der Link hier"),
        ("auf <b> Speichern </b> jetzt", "auf Speichern jetzt"),
        ("Zeile eins<br/>Zeile zwei", "Zeile eins Zeile zwei"),
        ("<ul><li>eins</li><li>zwei</li></ul>", "eins zwei"),
        ("H<sub>2</sub>O", "H2O"),
        ("Tee &amp; Milch <!-- kalt --> &#8211; &lt;gut&gt;", "Tee & Milch – <gut>"),
        ("Tee &amp; Milch", "Tee &amp; Milch"),
        ("a < b und c > d, x<y and z>w, 3<4, <3, <>, </>, < b>", None),
    ],
)
def test_what_is_left_without_tags(line: str, plain: str | None) -> None:
    assert take_out(line).plain == (line if plain is None else plain)


@pytest.mark.parametrize(
    "line",
    [
        "Klicken Sie auf <b>Speichern</b>, bitte.",
        '<p id="1">Der <i>alte <b>Hund</b></i> schläft.</p>',
        "Zeile eins<br/>Zeile zwei",
        "Drücke <x id='1'/> jetzt <img src=a.png>.",
        "H<sub>2</sub>O und <b>a</b><i>b</i>",
        "<br> Anfang und <i></i><b><i></i></b> Ende <br/> <br/>",
        "Tee &amp; Milch &lt;<b>gut</b>&gt;",
        "<b>offen",
        "</b>zu <i>auf</i>",
        "<b>über <i>kreuz</b> weiter</i>",
        "<!-- Notiz -->Text",
        "<b></b>",
    ],
)
def test_a_copy_has_its_tags_where_they_were(line: str) -> None:
    assert copied(line) == line


@pytest.mark.parametrize(
    ("line", "text", "order", "expected"),
    [
        ("der <b>rote Hund</b>", "the red dog", [0, 1, 2], "the <b>red dog</b>"),
        ("<b>heute</b> <i>hier</i>", "here today", [1, 0], "<i>here</i> <b>today</b>"),
        # The words of a pair are apart: all of the span, with what is between.
        ("<b>a b</b> c", "A C B", [0, 2, 1], "<b>A C B</b>"),
        # One word astray does not draw the tag over all others.
        ("<b>a b</b> c d e", "A B C D b E", [0, 1, 2, 3, 1, 4], "<b>A B</b> C D b E"),
        # Nothing stands for the pair's word: its neighbour.
        ("a <b>b</b> c", "A C", [0, 2], "<b>A</b> C"),
        ("<i>a</i><b>b</b>", "A", [0], "<i>A</i><b></b>"),
        ("a <x/>b c", "C B A", [2, 1, 0], "C <x/>B A"),
        ("a b<x/>", "B A", [1, 0], "B<x/> A"),
        ("a <x/> b c", "A C", [0, 2], "A <x/> C"),
        # A pair inside keeps to its own.
        ("<b>a <i>b</i></b> c", "B C A", [1, 2, 0], "<b><i>B</i> C A</b>"),
        # A tag alone that would stand inside another pair goes to its edge.
        ("<b>a c</b> <x/>b", "A B C", [0, 2, 1], "<x/><b>A B C</b>"),
    ],
)
def test_tags_go_with_their_words(line: str, text: str, order: list[int], expected: str) -> None:
    assert reordered(line, text, order) == expected


def test_without_words_tags_stand_before_the_text() -> None:
    marked = take_out("<b>a</b> <i/>")
    assert put_back(marked, "", [], spaced=True) == "<b></b> <i/>"


def test_symbols_of_the_model_are_left_to_it() -> None:
    marked = take_out("<b>a</b> <i>b</i>", symbols={"<b>", "</b>"})
    assert marked.plain == "<b>a</b> b"
    assert [element.opening for element in marked.elements] == ["<i>"]


PIECES = (
    "<t{}>",
    "</t{}>",
    "<t{}/>",
    "<br>",
    "<!--{}-->",
    "a ",
    "b",
    " c",
    ". ",
    " ",
    "<",
    "&amp;",
)


@given(
    pieces=st.lists(st.tuples(st.sampled_from(PIECES), st.integers(0, 4)), max_size=20),
    words=st.lists(st.tuples(st.sampled_from(["A", "B", "."]), st.integers(0, 20)), max_size=8),
    spaced=st.booleans(),
)
def test_every_tag_comes_out_once_and_pairs_never_cross(
    pieces: list[tuple[str, int]], words: list[tuple[str, int]], spaced: bool
) -> None:
    line = "".join(piece.format(number) for piece, number in pieces)
    marked = take_out(line)
    text = (" " if spaced else "").join(word for word, _ in words)
    source = word_spans(marked.plain)
    spans = word_spans(text, range(len(text)))
    if len(spans) != len(words) or not source:
        spans = []
    links = [
        Link(*span, *source[number % len(source)])
        for span, (_, number) in zip(spans, words, strict=False)
    ]
    written = put_back(marked, text, links, spaced)
    tag = re.compile(r"</?t\d/?>|<br>|<!--\d-->")
    if marked.elements:
        assert sorted(tag.findall(written)) == sorted(tag.findall(line))
        assert "".join(tag.sub("", written).split()) == "".join(text.split())
    else:
        assert written == text
    _check_nesting(line, written)


def _check_nesting(line: str, written: str) -> None:
    """Pairs that are known by their names lie in each other, and beside each other, as before."""
    names = [f"t{number}" for number in range(5)]
    tags = [f"<{slash}{name}>" for name in names for slash in ("", "/")]
    if any(line.count(tag) > 1 for tag in tags):
        return
    before, after = (
        {
            name: (text.find(f"<{name}>"), text.find(f"</{name}>"))
            for name in names
            if -1 < line.find(f"<{name}>") < line.find(f"</{name}>")
        }
        for text in (line, written)
    )
    pairs = list(combinations(before, 2))
    if any(_relation(before[one], before[other]) == "cross" for one, other in pairs):
        return
    assert all(start < end for start, end in after.values())
    for one, other in pairs:
        relation = _relation(before[one], before[other])
        assert _relation(after[one], after[other]) == relation


def _relation(one: tuple[int, int], other: tuple[int, int]) -> str:
    if one[1] < other[0] or other[1] < one[0]:
        return "apart"
    if one[0] < other[0] and other[1] < one[1]:
        return "around"
    return "inside" if other[0] < one[0] and one[1] < other[1] else "cross"


@pytest.mark.parametrize(
    "text", ["<!-- " * 40_000, "<b " * 60_000, "&a" * 100_000, "<a b='" * 40_000]
)
def test_what_never_becomes_a_tag_takes_no_longer_than_its_length(text: str) -> None:
    assert take_out(text).elements == ()


def test_many_tags_take_no_longer_than_their_number() -> None:
    """Each closing tag is looked up among all that wait."""
    marked = take_out("<b>" * 10_000 + "x" + "</i>" * 10_000)
    assert [element.alone for element in marked.elements] == [True, True]


@pytest.mark.parametrize("depth", [99, 100, 101, 3000])
def test_pairs_in_pairs_without_end(depth: int) -> None:
    """Beyond a hundred the tags stand alone: all come out, in order, and nothing gives way."""
    line = "<b>" * depth + "Hund" + "</b>" * depth + " da"
    marked = take_out(line)
    links = [Link(0, 4, 0, 4), Link(5, 7, 5, 7)]
    assert put_back(marked, marked.plain, links, True) == line
    element, pairs = marked.elements[0], 1
    while element.inner and not element.inner[0].alone:
        element, pairs = element.inner[0], pairs + 1
    assert pairs == min(depth, 100)
