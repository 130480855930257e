"""Blank sides, lines without words, copies, markup."""

from typing import Any

import pytest

from kakehashi.audit import Text
from kakehashi.audit.keys import Keys
from kakehashi.audit.sentences import blank_sides, markup, no_words, untranslated


def test_blank_sides_apart_from_blank_lines(text: Any) -> None:
    source = ["Ja.", "", " \u200b", "Nein.", "\xa0", "Gut."]
    target = ["Yes.", "Two.", "", "", "Five.", "Good."]
    found = list(blank_sides(text(source, target)))
    assert [(f.code, f.side, f.count) for f in found] == [
        ("blank.source", "source", 2),
        ("blank.target", "target", 1),
        ("blank.both", "both", 1),
    ]
    assert [finding.lines for finding in found] == [(2, 5), (4,), (3,)]
    assert [finding.severity for finding in found] == ["warning", "warning", "note"]


def test_lines_without_words(text: Any) -> None:
    source = ["@@", "Ja!", "...", "", "7", "猫", "😀", "—?"]
    (finding,) = no_words(text(source, ["Yes."] * len(source)))
    assert (finding.lines, finding.side, finding.severity) == ((1, 3, 7, 8), "source", "warning")


def test_copies_are_compared_by_letters_and_digits(text: Any) -> None:
    source = ["New York", "Ich bin hier.", "123", "OK!", "...", ""]
    target = ["new york.", "I am here.", "123", "OK", "...", ""]
    made: Text = text(source, target)
    (finding,) = untranslated(made, Keys.of(made))
    assert finding.lines == (1, 4)
    assert finding.severity == "warning"
    many: Text = text(["Tom", *map(str, range(999))], ["Tom", *map(str, range(1, 1000))])
    assert [f.severity for f in untranslated(many, Keys.of(many))] == ["note"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("Salt &amp; pepper", "markup.entities"),
        ("It&#39;s", "markup.entities"),
        ("It&#x27;s", "markup.entities"),
        ("a &lt; b", "markup.entities"),
        ("a <b>bold</b> move", "markup.tags"),
        ('see <a href="x.html">this</a>', "markup.tags"),
        ("one<br/>two", "markup.tags"),
    ],
)
def test_markup(text: Any, line: str, code: str) -> None:
    (finding,) = markup(text(["Gut."] * 3, ["Good.", line, "Good."]))
    assert (finding.code, finding.side, finding.lines) == (code, "target", (2,))


@pytest.mark.parametrize("line", ["AT&T; and so on", "R&D", "x < y and y > z", "1 <2", "a & b;"])
def test_what_only_looks_like_markup(text: Any, line: str) -> None:
    assert list(markup(text([line], [line]))) == []


def test_entities_are_told_by_frequency_and_meaning(text: Any) -> None:
    target = ["a &amp; b &amp; c", "&quot;a&quot;", "&amp;"]
    (finding,) = markup(text(["x"] * 3, target))
    assert "&amp; × 3, &quot; × 2" in finding.title
    assert finding.examples[0].detail == "means &"
