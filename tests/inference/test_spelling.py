"""Unknown pieces of a translation become words of its source."""

from typing import Any

import numpy as np
import pytest

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.inference.spelling import copy_unknown, spelled_source, spelled_translation
from kakehashi.symbols import UNK


@pytest.fixture(scope="module")
def bare(small_corpus: Any) -> Tokenizer:
    """A tokenizer to which what it has not seen is unknown."""
    lines = [*small_corpus.source, *small_corpus.target]
    return Tokenizer.train(lines, vocab_size=300, byte_fallback=False)


def copied(bare: Tokenizer, source: str, ids: list[int], looks: list[int]) -> str:
    """What becomes of a translation each of whose pieces looks at a piece of the source."""
    row = bare.encode(source)
    attention = np.full((len(ids) + 1, len(row) + 1), 0.1, np.float32)
    attention[range(len(looks)), looks] = 1.0
    given = spelled_translation(bare, ids)
    found = copy_unknown(given, spelled_source(bare, source, row), attention)
    ends = [end for _, end in found.pieces]
    assert ends == sorted(ends) and ends[-1] == len(found.text)
    assert len(found.pieces) == len(ids)
    return found.text


def pieces_of(bare: Tokenizer, text: str, unknown: str) -> list[int]:
    """The pieces of a text, in which a sign stands for the unknown piece."""
    first, *rest = text.split(unknown)
    ids = bare.encode(first) if first else []
    for part in rest:
        ids.append(UNK)
        whole = bare.encode("a" + part)
        ids += whole[len(bare.encode("a")) :]
    return ids


def test_a_name_is_copied_whole(bare: Tokenizer) -> None:
    source = "Der Hund Włodzię schläft."
    row = bare.encode(source)
    assert row.count(UNK) == 2
    ids = pieces_of(bare, "the dog §.", "§")
    place = ids.index(UNK)
    for unknown in (at for at, piece in enumerate(row) if piece == UNK):
        looks = [0] * len(ids)
        looks[place] = unknown
        assert copied(bare, source, ids, looks) == "the dog Włodzię."
    # It looks elsewhere most, but what the source has unknown comes first.
    assert copied(bare, source, ids, [0] * len(ids)) == "the dog Włodzię."


def test_within_a_word_the_unknown_letter_is_copied(bare: Tokenizer) -> None:
    source = "Wałensa schläft."
    row = bare.encode(source)
    ids = pieces_of(bare, "Wa§ensa's dog", "§")
    looks = [row.index(UNK)] * len(ids)
    assert copied(bare, source, ids, looks) == "Wałensa's dog"


def test_signs_without_spaces_and_several_at_once(bare: Tokenizer) -> None:
    source = "Herr 鷗外 kam mit 漢字"
    row = bare.encode(source)
    first, second = (at for at, piece in enumerate(row) if piece == UNK)
    ids = pieces_of(bare, "§ came with §", "§")
    looks = [second if piece == UNK else 0 for piece in ids]
    looks[ids.index(UNK)] = first
    assert copied(bare, source, ids, looks) == "鷗外 came with 漢字"


def test_without_unknown_pieces_the_word_most_looked_at(bare: Tokenizer) -> None:
    source = "Der Hund schläft."
    row = bare.encode(source)
    spans = bare.encode_spans(source)
    hund = next(at for at, (start, end) in enumerate(spans) if start <= 5 < end)
    ids = pieces_of(bare, "the §", "§")
    assert copied(bare, source, ids, [hund] * len(ids)) == "the Hund"
    assert row.count(UNK) == 0


def test_an_empty_source_has_nothing_to_copy(bare: Tokenizer) -> None:
    given = spelled_translation(bare, [UNK])
    attention = np.ones((2, 1), np.float32)
    assert copy_unknown(given, spelled_source(bare, "", []), attention) == given
    assert spelled_translation(bare, []).text == ""


def test_long_translations_are_decoded_a_fixed_number_of_times(
    bare: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0
    decode = bare.decode

    def counted(ids: Any) -> str:
        nonlocal calls
        calls += 1
        return decode(ids)

    monkeypatch.setattr(bare, "decode", counted)
    ids = bare.encode("Der Hund schläft. " * 20)
    spelled = spelled_translation(bare, ids)
    assert calls == 1
    assert "".join(spelled.text[start:end] for start, end in spelled.pieces) == spelled.text
