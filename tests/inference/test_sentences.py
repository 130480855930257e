"""Where sentences end, and what stands between their translations."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kakehashi.data.reading import is_blank
from kakehashi.inference.sentences import joint, sentences, without_spaces

TEXTS = st.lists(
    st.one_of(
        st.sampled_from("aBÉ漢é.!?。」「\"'()„“”,1 "),
        st.sampled_from(" \n\t\x85\xa0\u2028\u3000\u200b\u0301\ud800\x00\x1f"),
        st.sampled_from(["Dr. ", "z. B. ", "U.S. ", "usw. ", "… "]),
        st.characters(),
    ),
    max_size=24,
).map("".join)


@given(text=TEXTS, language=st.sampled_from(["de", "en", "ja", "zh", "fr", "ar", "hi", "tlh"]))
@example(text="B\x85」。\x85B\x85.\u3000", language="de")  # the library panics at it
def test_sentences_are_the_text(text: str, language: str) -> None:
    found = sentences(text, language)
    assert "".join(found) == text
    assert len(found) <= 1 or not any(map(is_blank, found))


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("de", ["Dr. Weiß kam am 3. Mai um 8.30 Uhr.  ", "Er blieb z. B. bis zum Abend. ", "Gut!"]),
        ("de-AT", ["Sie rief: „Komm! Es regnet.“ ", "Dann lief sie los."]),
        ("en", ["Mrs. Grey lives in the U.S. now.\u00a0", '"Really? Since when?" ', "Yes."]),
        ("ja", ["月が昇る。", "「行こう！早く。」", "本当？\u3000", "はい！"]),
        ("zh_TW", ["他说：“我走了。你呢？”", "天气很好！", "真的吗？"]),
        ("ru", ["Он пришёл в 5 ч. вечера. ", "Где она?"]),
        ("hi", ["वह आया। ", "वह गई।"]),
    ],
)
def test_sentences_of_languages(language: str, expected: list[str]) -> None:
    assert sentences("".join(expected), language) == expected


@pytest.mark.parametrize(
    ("space", "german", "japanese"),
    [
        (" ", " ", ""),
        ("", " ", ""),
        ("\t", "\t", "\t"),
        ("\n\n", "  ", "  "),
        ("  ", "  ", "  "),
    ],
)
def test_what_stands_between_translations(space: str, german: str, japanese: str) -> None:
    assert joint(space, "de-AT") == german
    assert joint(space, "ja") == japanese


def test_languages_without_spaces() -> None:
    assert [without_spaces(code) for code in ("ja", "zh-Hans", "ZH_TW", "ko", "en", "th")] == [
        *(True, True, True, False, False, True)
    ]
