import html.entities

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.data.cleaning import STEPS
from kakehashi.data.config import CLEANING_STEPS

TEXT = st.text(
    st.sampled_from(
        "aé犬 \t\n\r\x00\x1f\x7f\x85\xa0\xad\u0301\u200b\u200c\u200d\u2028\u202e\ufeff&;#amp39x"
    ),
    max_size=30,
)


def test_the_names_are_those_of_the_configuration() -> None:
    assert set(STEPS) == set(CLEANING_STEPS)


@pytest.mark.parametrize("name", STEPS)
@given(text=TEXT)
def test_clean_text_stays_clean(name: str, text: str) -> None:
    once = STEPS[name](text)
    if name != "entities":  # &amp;amp; is meant to be &amp;
        assert STEPS[name](once) == once
    plain = "Ein ganz gewöhnlicher Satz, 30 % länger – «犬»."
    assert STEPS[name](plain) == plain


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("entities", "Tom &amp; Jerry&#39;s &lt;b&gt; &#x72AC;&quot;", "Tom & Jerry's <b> 犬\""),
        ("entities", "&nbsp;&amp;amp;", "\xa0&amp;"),
        (
            "entities",
            "R&D; a &not b &amp c &#10;&#0; &bogus;",
            "R&D; a &not b &amp c &#10;&#0; &bogus;",
        ),
        ("controls", "a\tb\u2028c\x85d", "a b c d"),
        ("controls", "\ufeffZu\xadcker\x00\u200b \u202eab\u202c\x7f", "Zucker ab"),
        ("controls", "می\u200cخواهم 👩\u200d🔬 a\xa0b", "می\u200cخواهم 👩\u200d🔬 a\xa0b"),
        ("spaces", " a\xa0\u3000 b\tc\n", "a b c"),
        ("strip", "\xa0 a  b\t", "a  b"),
        ("nfc", "e\u0301 か\u3099", "é が"),
        ("nfc", "ﬁ ①", "ﬁ ①"),
    ],
)
def test_steps(name: str, text: str, expected: str) -> None:
    assert STEPS[name](text) == expected


def test_every_named_entity_of_a_visible_character_is_read() -> None:
    for name, character in html.entities.html5.items():
        if name.endswith(";") and character.isprintable():
            assert STEPS["entities"](f"&{name}") == character
