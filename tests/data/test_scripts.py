import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.data.scripts import script_share, scripts_of
from kakehashi.errors import ConfigError


@pytest.mark.parametrize(
    ("language", "scripts"),
    [
        ("de", ["Latn"]),
        ("ja", ["Hira", "Kana", "Hani"]),
        ("ko", ["Hang", "Hani"]),
        ("sr", ["Cyrl", "Latn"]),
        ("pt-BR", ["Latn"]),
        ("sr_Latn", ["Latn"]),
        ("zh-Hant-TW", ["Hani", "Bopo"]),
        ("deu_Latn", ["Latn"]),
        ("jpn_Jpan", ["Hira", "Kana", "Hani"]),
        ("EL", ["Grek"]),
        ("tlh", None),
    ],
)
def test_languages(language: str, scripts: list[str] | None) -> None:
    assert scripts_of(language) == scripts


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("de", "Straße über Öl"),
        ("ja", "コーヒーを飲む時々、ｶﾀｶﾅ"),
        ("zh", "我喝咖啡"),
        ("ko", "커피를 마신다"),
        ("ru", "Я пью кофе"),
        ("el", "Πίνω καφέ"),
        ("ar", "أشرب القهوة"),
        ("he", "אני שותה קפה"),
        ("hi", "मैं कॉफ़ी पीता हूँ"),
        ("th", "ฉันดื่มกาแฟ"),
        ("vi", "Tôi uống cà phê"),
        ("am", "ቡና እጠጣለሁ"),
        ("ka", "ყავას ვსვამ"),
    ],
)
def test_a_sentence_is_in_its_own_script_and_no_other(language: str, text: str) -> None:
    scripts = scripts_of(language)
    assert scripts is not None
    assert script_share(scripts)(text) == 1.0
    assert script_share(scripts)(unicodedata.normalize("NFD", text)) == 1.0
    others = {"Latn", "Cyrl", "Grek", "Arab", "Hang", "Thai"} - set(scripts)
    assert script_share(sorted(others))(text) == 0.0


@given(st.text("ab", max_size=5), st.text("жя", max_size=5), st.text("1 .!𝒜犭"[:5], max_size=5))
def test_only_letters_count(latin: str, cyrillic: str, rest: str) -> None:
    n = len(latin) + len(cyrillic)
    share = script_share(["Latn"])(rest + cyrillic + latin)
    assert share == (len(latin) / n if n else 1.0)


def test_an_unknown_script_is_named() -> None:
    with pytest.raises(ConfigError, match=r"no script 'Latin'.*Latn, Cyrl"):
        script_share(["Latin"])
