"""Odd characters, spaces at the wrong place, and letters in two spellings."""

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.audit import Text
from kakehashi.audit.characters import ODD_CHARACTERS, normal_forms, odd_characters

PLAIN = "Das Boot liegt am Ufer."


@pytest.mark.parametrize(
    ("character", "code"),
    [
        ("\xa0", "characters.nbsp"),
        ("\xad", "characters.soft_hyphen"),
        ("\u200b", "characters.zero_width"),
        ("\u2060", "characters.zero_width"),
        ("\u200d", "characters.zero_width"),
        ("\u200c", "characters.zero_width"),
        ("\ufeff", "characters.bom"),
        ("\u2028", "characters.separator"),
        ("\u2029", "characters.separator"),
        ("\x85", "characters.separator"),
        ("\t", "characters.control"),
        ("\x00", "characters.control"),
        ("\x0c", "characters.control"),
        ("\r", "characters.control"),
        ("\x7f", "characters.control"),
        ("\x9c", "characters.control"),
        ("\u200f", "characters.bidi"),
        ("\u202e", "characters.bidi"),
        ("\u2066", "characters.bidi"),
        ("\ufffd", "characters.replacement"),
        ("\ue123", "characters.private_use"),
        ("\U0010fffd", "characters.private_use"),
        ("\ud83d", "characters.surrogate"),
        ("\u2009", "characters.odd_space"),
        ("\u202f", "characters.odd_space"),
        ("\u3000", "characters.ideographic_space"),
    ],
)
@pytest.mark.parametrize("side", ["source", "target"])
def test_each_is_found_on_its_side_and_lines(
    text: Any, character: str, code: str, side: str
) -> None:
    odd = f"Das Boot{character}liegt{character}am Ufer."
    sides = {"source": [PLAIN] * 9, "target": [PLAIN] * 9}
    sides[side][2] = sides[side][7] = odd
    (finding,) = odd_characters(text(**sides))
    assert (finding.code, finding.side, finding.count, finding.of) == (code, side, 2, 9)
    assert finding.lines == (3, 8)
    assert f"U+{ord(character):04X} × 4" in finding.title
    assert finding.examples[0].detail == f"U+{ord(character):04X}"
    assert (finding.examples[0].line, getattr(finding.examples[0], side)) == (3, odd)


@pytest.mark.parametrize(
    ("line", "language"),
    [
        ("می‌روم به خانه", "fa"),
        ("क्‍ष", "hi"),
        ("Die Familie 👨\u200d👩\u200d👧 ist da.", "de"),
        ("Eine Ärztin 👩🏽\u200d⚕️ kommt.", "de"),
        ("東京\u3000大阪", "ja"),
        ("שלום \u200f(עולם)", "he"),
        ("ÄÖÜß “Zitat” – und … Ende", "de"),
    ],
)
def test_what_a_language_is_written_with_is_not_odd(text: Any, line: str, language: str) -> None:
    assert list(odd_characters(text([line], [line], language, target_language=language))) == []


def test_spaces_at_the_wrong_place(text: Any) -> None:
    lines = [PLAIN, PLAIN + " ", " " + PLAIN, "Das  Boot   liegt.", PLAIN + "\xa0", "  ", ""]
    found = {f.code: f.lines for f in odd_characters(text(lines, [PLAIN] * 7))}
    assert found == {
        "characters.nbsp": (5,),
        "spaces.trailing": (2, 5),
        "spaces.leading": (3,),
        "spaces.double": (4,),
    }


@given(st.lists(st.text(), min_size=1))
def test_counts_agree_with_looking_at_every_character(lines: list[str]) -> None:
    text = Text(lines, [PLAIN] * len(lines), range(1, len(lines) + 1))
    found = {f.code: f.count for f in odd_characters(text)}
    for code, characters in (
        ("characters.nbsp", "\xa0"),
        ("characters.bom", "\ufeff"),
        ("characters.soft_hyphen", "\xad"),
        ("characters.control", "".join(map(chr, {*range(32), *range(127, 160)} - {0x85}))),
    ):
        assert found.get(code, 0) == sum(any(c in line for c in characters) for line in lines)


def test_the_classes_do_not_overlap() -> None:
    import re

    for point in [*range(0x3001), *range(0xD800, 0xF900), *range(0xFE00, 0x10000), 0x10FFFF]:
        matching = [odd.code for odd in ODD_CHARACTERS if re.search(odd.pattern, chr(point))]
        assert len(matching) <= 1, (hex(point), matching)


def test_letters_in_two_spellings(text: Any) -> None:
    both = ["Die Brücke.", unicodedata.normalize("NFD", "Die Brücke."), "Der Fluß."]
    (finding,) = normal_forms(text(both, ["The bridge."] * 3))
    assert (finding.code, finding.severity) == ("characters.not_nfc", "warning")
    assert (finding.lines, finding.side) == ((2,), "source")
    assert "written both ways: ü" in finding.title
    (finding,) = normal_forms(text(both[1:], ["The bridge."] * 2))
    assert finding.severity == "note"
    assert list(normal_forms(text([both[0], both[2]], ["é", "e"]))) == []
