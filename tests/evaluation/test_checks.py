"""What in a text makes its scores mean less is said, with the first lines."""

import unicodedata

from kakehashi.evaluation.checks import composition_warning, numbered, tokenised_warning


def test_text_that_is_not_composed_is_told() -> None:
    composed = ["Grüße", "Straße", "café", "猫"]
    assert composition_warning("ref", composed) is None
    apart = [unicodedata.normalize("NFD", line) for line in composed]
    warning = composition_warning("test.de", ["plain", *apart])
    assert warning is not None
    assert warning.startswith("test.de: 2 of 5 lines are not in Unicode NFC (first lines 2, 4);")
    # an Angstrom sign, and Hangul taken apart
    assert composition_warning("ref", ["5 \u212b"]) is not None
    assert composition_warning("ref", [unicodedata.normalize("NFD", "한국")]) is not None


def test_tokenised_translations_are_told() -> None:
    plain = ["The dog sleeps."] * 18
    assert tokenised_warning("out", [*plain, "He left .", "He came . "]) is None
    warning = tokenised_warning("out", [*plain, "He left .", "He came . ", "He saw ."])
    assert warning is not None
    assert "out: 3 of 21 lines" in warning
    assert "first lines 19, 20, 21" in warning
    assert tokenised_warning("out", ["It rains ."]) is not None


def test_the_first_five_lines_are_named() -> None:
    assert numbered([1203]) == "line 1,203"
    assert numbered(range(2, 30)) == "first lines 2, 3, 4, 5, 6"
