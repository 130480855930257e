"""Words of pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.serving.words import spelt, units


@pytest.mark.parametrize(
    ("pieces", "spaced", "words"),
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
def test_words(pieces: str, spaced: bool, words: list[str]) -> None:
    given_pieces = pieces.split(" ")
    found = units(given_pieces, spaced=spaced)
    assert [spelt([given_pieces[i] for i in unit]) for unit in found] == words


@given(st.lists(st.sampled_from(["▁a", "b", "▁", ".", "<0xE7>", "猫", "'"])), st.booleans())
def test_every_piece_belongs_to_one_word(pieces: list[str], spaced: bool) -> None:
    assert [i for unit in units(pieces, spaced=spaced) for i in unit] == list(range(len(pieces)))
