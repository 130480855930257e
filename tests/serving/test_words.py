"""Words of pieces."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.serving.words import units, word_pairs, words


@pytest.mark.parametrize(
    ("pieces", "spaced", "texts"),
    [
        ("▁Der ▁H und ▁schläft .", True, ["Der", "Hund", "schläft", "."]),
        ("▁it ' s ▁late ! ?", True, ["it's", "late", "!?"]),
        ('▁" Nein " , ▁sagt ▁sie .', True, ['"Nein', '",', "sagt", "sie", "."]),
        ("▁ Hund", True, ["Hund"]),
        ("▁ ▁ <0xF0> <0x9F> <0x90> <0xB6> ▁da", True, ["🐶", "da"]),
        ("▁ 犬 が <0xE7> <0x8C> <0xAB> 。", False, ["犬", "が", "猫", "。"]),
        (".", True, ["."]),
    ],
)
def test_words(pieces: str, spaced: bool, texts: list[str]) -> None:
    assert [word.text for word in words(pieces.split(" "), spaced=spaced)] == texts


def test_ends_belong_to_no_word_and_keep_their_places() -> None:
    pieces = ["▁Ja", ".", "</s>", "▁Ne", "in", "</s>"]
    found = words(pieces, spaced=True)
    assert [(word.text, word.pieces) for word in found] == [
        ("Ja", (0,)),
        (".", (1,)),
        ("Nein", (3, 4)),
    ]


def test_words_belong_together_when_pieces_of_them_do() -> None:
    sources = words(["▁Der", "▁Hu", "nd", "</s>"], spaced=True)
    targets = words(["▁The", "▁do", "g", "</s>"], spaced=True)
    pairs = ((0, 0), (1, 1), (2, 2), (0, 2), (3, 1), (2, 3))
    assert word_pairs(pairs, sources, targets) == [(0, 0), (0, 1), (1, 1)]


@given(st.lists(st.sampled_from(["▁a", "b", "▁", ".", "<0xE7>", "猫", "'"])), st.booleans())
def test_every_piece_belongs_to_one_word(pieces: list[str], spaced: bool) -> None:
    assert [i for unit in units(pieces, spaced=spaced) for i in unit] == list(range(len(pieces)))


def test_a_word_of_very_many_pieces_takes_no_longer_for_each() -> None:
    """Whoever looks at all of a word for each of its pieces takes minutes for this."""
    dogs = ["<0xF0>", "<0x9F>", "<0x90>", "<0xB6>"] * 5_000
    start = time.process_time()
    assert units(dogs, spaced=True) == [list(range(20_000))]
    assert time.process_time() - start < 5
