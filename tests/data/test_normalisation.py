import unicodedata

import pytest

from kakehashi.data.normalisation import changed_characters, normalisation_effect
from kakehashi.data.tokenizer import Tokenizer

TEXT = [
    "Der Fluss ist breit.",
    "Wir ﬁnden １２ Äpfel …",
    "  zwei  Leerzeichen ",
    "noch eine ﬁgur",
    "geschützt\xa0und ½",
    "",
]


def test_changed_sentences_are_counted_and_shown() -> None:
    effect = normalisation_effect("nfkc", iter(TEXT))
    assert (effect.sentences, effect.changed) == (6, 4)
    assert [example.before for example in effect.examples] == [TEXT[1], TEXT[2], TEXT[4]]
    for example in (effect.examples[0], effect.examples[2]):
        assert example.after == unicodedata.normalize("NFKC", example.before)
    assert effect.examples[1].after == "zwei Leerzeichen"
    assert "U+FB01 LATIN SMALL LIGATURE FI -> 'fi'" in effect.examples[0].characters
    assert "U+00A0 NO-BREAK SPACE -> U+0020 SPACE" in effect.examples[2].characters
    report = effect.report().splitlines()
    assert report[0] == ("normalisation: nfkc (changes 4 of 6 training sentences), for example:")
    assert report[1:3] == [
        '  before  "Wir ﬁnden １２ Äpfel …"',
        '  after   "Wir finden 12 Äpfel ..."',
    ]


def test_identity_changes_nothing() -> None:
    effect = normalisation_effect("identity", TEXT)
    assert (effect.sentences, effect.changed, effect.examples) == (6, 0, [])
    assert str(effect) == "identity (every character is kept)"


def test_a_corpus_that_nfkc_leaves_alone() -> None:
    effect = normalisation_effect("nfkc", ["ordinary text"] * 3)
    assert effect.changed == 0
    assert effect.report() == "normalisation: nfkc (changes 0 of 3 training sentences)"


def test_without_other_changes_the_same_is_shown_again() -> None:
    effect = normalisation_effect("nfkc", [f"{i} …" for i in range(7)])
    assert effect.changed == 7
    assert [example.before for example in effect.examples] == ["0 …", "1 …", "2 …"]


def test_the_tokenizers_symbols_are_left_alone(small_corpus) -> None:
    tokenizer = Tokenizer.train(
        small_corpus.source, vocab_size=331, normalization="nfkc", symbols=["①"]
    )
    text = ["① gut", "② gut"]
    assert normalisation_effect("nfkc", text).changed == 2
    assert normalisation_effect("nfkc", text, tokenizer.normalise).changed == 1


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a\u200bb", "ab", ["U+200B ZERO WIDTH SPACE -> nothing"]),
        ("e\u0301", "é", ["U+0065 LATIN SMALL LETTER E + U+0301 COMBINING ACUTE ACCENT -> U+00E9"]),
        ("xﬁyﬁ", "xfiyfi", ["U+FB01 LATIN SMALL LIGATURE FI -> 'fi'"]),
        ("a\x01", "a", ["U+0001 without a name -> nothing"]),
        ("same", "same", []),
    ],
)
def test_characters_are_named(before: str, after: str, expected: list[str]) -> None:
    described = changed_characters(before, after)
    assert len(described) == len(expected)
    assert all(text.startswith(start) for text, start in zip(described, expected, strict=True))


def test_what_cannot_be_seen_is_escaped_and_long_sentences_are_cut() -> None:
    effect = normalisation_effect("nfkc", [f"{'x' * 300}…\u2028{'y' * 300}"])
    before = effect.report().splitlines()[1]
    assert before.startswith('  before  …"xxx')
    assert before.endswith('yyy"…')
    assert "x…\\u2028y" in before
    assert len(before) < 120
