"""What counts as a placeholder, and what is told of lost ones."""

import re

import pytest

from kakehashi.inference.placeholders import PLACEHOLDER, changed_placeholders, placeholders


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hallo {name}, {0} {} {x!r:>5} {{zwei Wörter}}", "{name} {0} {} {x!r:>5} {{zwei Wörter}}"),
        ("${HOME} #{a} %{b} $ {c}", "${HOME} #{a} %{b} {c}"),
        ("%s %(count)d %1$s %5.2f %-3d %lu %@", "%s %(count)d %1$s %5.2f %-3d %lu %@"),
        ("100%s, 5 % der, 50%ige, 7 %d, %%s %sicher", "%d"),
        ("Pfad %USER% und %TEMP_1%", "%USER% %TEMP_1%"),
        ("(https://a.example/x?y={z}&k=1).", "https://a.example/x?y={z}&k=1"),
        ("www.a.example, ftp://b.example/c.", "www.a.example ftp://b.example/c"),
        ("an anna.b+c@mail.a.example, @anna", "anna.b+c@mail.a.example"),
        ("{ein Satz} { } {", ""),
    ],
)
def test_placeholders(text: str, expected: str) -> None:
    found = [match[0] for match in placeholders(text, [PLACEHOLDER])]
    assert found == re.findall(r"\{\{.*?\}\}|\S+", expected)


def test_what_is_told_of_them() -> None:
    patterns = [PLACEHOLDER, re.compile("#[0-9]+")]
    source = "{a} {a} %s #12 {known}"
    assert changed_placeholders(source, "#12 %s {a} x{a}", patterns, ["{known}"]) == ""
    told = changed_placeholders(source, "{a} %d #12", patterns, ["{known}"])
    assert told == "lacks {a} %s, adds %d"
    assert changed_placeholders(source, "", [], []) == ""


@pytest.mark.parametrize(
    "text",
    ["w" * 200_000, "%" + "0" * 200_000, "a.b-" * 50_000 + "@", "http://" + "." * 200_000],
)
def test_long_lines_take_no_longer_than_their_length(text: str) -> None:
    """Time in the square of the length would be hours here."""
    assert not [match for match in placeholders(text, [PLACEHOLDER]) if len(match[0]) > 2]
