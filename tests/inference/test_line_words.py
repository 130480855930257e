"""Pieces find their words, whatever a text is made of."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kakehashi.data.tokenizer import ESCAPE, SPACE, Tokenizer
from kakehashi.inference.alignment import pharaoh, word_alignment
from kakehashi.inference.line_words import NONE, line_words, piece_words
from kakehashi.inference.spelling import spelled_translation

SPACES = " \t\u00a0\u3000\u2028\u0085\x1f\x0b"
# A list, not st.text: there one alphabet is made of all three, and odd characters would be rare.
TEXTS = st.lists(
    st.one_of(
        st.sampled_from("aeHund.schläf" + SPACES),
        st.sampled_from(SPACE + ESCAPE + "se㌔ﷺ𝒳\u0301\u200b\x07👨\u200d"),
        st.characters(codec="utf-8"),
    ),
    max_size=16,
).map("".join)
SYMBOLS = ("{x}", "<b>", "&nbsp;")


@pytest.fixture(scope="module")
def tokenizers(small_corpus: Any) -> list[Tokenizer]:
    lines = [*small_corpus.source, *small_corpus.target]
    made = [
        Tokenizer.train(lines, vocab_size=401, normalization=normalization, symbols=SYMBOLS)
        for normalization in ("identity", "nfkc", "nmt_nfkc")
    ]
    bare = Tokenizer.train(lines, vocab_size=150, kind="bpe", byte_fallback=False)
    return [*made, bare]


def numbered(text: str, words: list[int]) -> list[str]:
    """The words that the numbers of a text's characters tell of."""
    count = max(words, default=NONE) + 1
    return [
        "".join(c for c, at in zip(text, words, strict=True) if at == word) for word in range(count)
    ]


@given(text=TEXTS)
def test_words_are_what_white_space_divides(text: str) -> None:
    assert numbered(text, line_words(text)) == text.split()


@given(text=TEXTS)
def test_pieces_of_a_text_cover_it_in_order(tokenizers: list[Tokenizer], text: str) -> None:
    for tokenizer in tokenizers:
        spans = tokenizer.encode_spans(text)
        ids = tokenizer.encode(text)
        assert len(spans) == len(ids)
        assert spans == sorted(spans, key=lambda span: span[0])
        assert all(0 <= begin <= end <= len(text) for begin, end in spans)
        if tokenizer.settings.normalization == "identity" and ids and tokenizer is tokenizers[0]:
            covered = {at for begin, end in spans for at in range(begin, end)}
            assert covered == set(range(len(text)))
            # Pieces that end a character end where the text of the pieces so far does.
            for count in range(1, len(ids) + 1):
                begun = tokenizer.decode(ids[:count])
                if text.startswith(begun) and not begun.endswith(ESCAPE):
                    assert spans[count - 1][1] == len(begun)


@given(text=TEXTS)
def test_every_word_of_a_text_has_pieces_that_spell_it(
    tokenizers: list[Tokenizer], text: str
) -> None:
    tokenizer = tokenizers[0]
    ids, words = tokenizer.encode(text), text.split()
    inside = piece_words(tokenizer.pieces(ids), tokenizer.encode_spans(text), line_words(text))
    for number, word in enumerate(words):
        own = [i for i, held in zip(ids, inside, strict=True) if number in held]
        assert word.encode("utf-8", "replace") in tokenizer.decode(own).encode("utf-8", "replace")
    assert {number for held in inside for number in held} == set(range(len(words)))


@settings(max_examples=100)
@given(data=st.data())
def test_whatever_a_model_writes_has_its_places(
    tokenizers: list[Tokenizer], data: st.DataObject
) -> None:
    for tokenizer in tokenizers:
        numbers = [1, *range(4, tokenizer.vocab_size)]
        ids = data.draw(st.lists(st.sampled_from(numbers), max_size=12))
        if data.draw(st.booleans()):
            ids += tokenizer.encode(data.draw(TEXTS))
        text, spans = tokenizer.decode(ids), tokenizer.decode_spans(ids)
        assert len(spans) == len(ids)
        assert spans == sorted(spans, key=lambda span: span[0])
        covered = {at for begin, end in spans for at in range(begin, end)}
        assert covered == set(range(len(text)))
        written = spelled_translation(tokenizer, ids)
        words = written.text.split()
        inside = piece_words(tokenizer.pieces(ids), written.pieces, line_words(written.text))
        assert {number for held in inside for number in held} == set(range(len(words)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  Zug", {"": {0}}),
        ("a  ", {"": set()}),
        ("ein \u00a0 Hund", {"ein": {0}, "Hund": {1}}),
        (f"a{SPACE}b c", {"b": {0}, "c": {1}}),
        ("猫 Hund", {"<0xE7>": {0}, "<0xAB>": {0}, "Hund": {1}}),
        ("a{x}b {x}", {"{x}": {0, 1}}),
    ],
)
def test_places_by_hand(
    tokenizers: list[Tokenizer], text: str, expected: dict[str, set[int]]
) -> None:
    tokenizer = tokenizers[0]
    pieces = tokenizer.pieces(tokenizer.encode(text))
    inside = piece_words(pieces, tokenizer.encode_spans(text), line_words(text))
    for wanted, numbers in expected.items():
        held = [each for p, each in zip(pieces, inside, strict=True) if p.strip(SPACE) == wanted]
        assert {number for each in held for number in each} == numbers


def test_a_character_that_normalisation_makes_several_of_is_one_place(
    tokenizers: list[Tokenizer],
) -> None:
    text = "x ㌔ ﷺ y"  # the last but one becomes four words
    for tokenizer in tokenizers[1:3]:
        pieces = tokenizer.pieces(tokenizer.encode(text))
        inside = piece_words(pieces, tokenizer.encode_spans(text), line_words(text))
        assert {n for held in inside for n in held} == {0, 1, 2, 3}
        assert all(len(held) <= 1 for held in inside)


def test_words_are_aligned_where_pieces_are() -> None:
    pairs = [(0, 0), (2, 1), (1, 2), (3, 3)]
    sources = [(0,), (0,), (), (1, 2)]
    targets = [(0,), (0,), (1,), (1,)]
    assert word_alignment(pairs, sources, targets) == ((0, 0), (0, 1), (1, 1), (2, 1))
    assert pharaoh(((0, 0), (0, 1), (2, 1))) == "0-0 0-1 2-1"
    assert pharaoh(()) == ""
