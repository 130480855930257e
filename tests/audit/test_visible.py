"""What is shown is what can be seen, and does nothing to a terminal or a page."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.audit.visible import parts, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\xa0b", "a[U+00A0]b"),
        ("a\tb\x1b[31m", "a[U+0009]b[U+001B][31m"),
        (" a  b ", "·a ·b·"),
        ("x\u202ey", "x[U+202E]y"),
        ("\ud83d", "[U+D83D]"),
        ("müde 猫 😀", "müde 猫 😀"),
        ("abcdef", "abcde..."),
    ],
)
def test_examples(text: str, shown: str) -> None:
    assert visible(text, 5 if text == "abcdef" else 50) == shown


@given(st.text(st.characters(exclude_categories=())))
def test_nothing_invisible_is_left(text: str) -> None:
    shown = visible(text, 1000)
    shown.encode("utf-8")
    for character in shown:
        assert unicodedata.category(character) not in ("Cc", "Zl", "Zp", "Cs", "Co")
        assert unicodedata.bidirectional(character) not in (
            "RLO",
            "LRO",
            "RLE",
            "LRE",
            "RLI",
            "LRI",
        )


@given(
    st.text(
        st.characters(categories=("L", "N", "P", "S"), exclude_characters="\ufffc\ufffd"),
        max_size=50,
    )
)
def test_what_can_be_seen_stays(text: str) -> None:
    assert parts(text, 50) == ([(text, False)] if text else [])
