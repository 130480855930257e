"""Pieces joined to words: every piece in one word, every word with a piece, rows distributions."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.insight.words import Words, join, words_of


@given(st.text(alphabet="ab .,»«'-猫が\u0301\u3000", max_size=20), st.data())
def test_words_partition_the_pieces(text: str, data: st.DataObject) -> None:
    inner = st.lists(st.integers(0, len(text)), max_size=8)
    cuts = [0, *sorted(data.draw(inner)), len(text)]
    pieces = list(pairwise(cuts))
    words = words_of(text, pieces)
    assert len(words.of_piece) == len(pieces)
    assert sorted(set(words.of_piece)) == list(range(len(words.labels)))
    visible = "".join("".join(words.labels).split()).replace("·", "")
    assert visible == "".join(text.split())


@pytest.mark.parametrize(
    ("pieces", "labels", "of_piece"),
    [
        (["Er", " li", "est", ":"], ("Er", "liest", ":"), (0, 1, 1, 2)),
        (["Er", " ", "liest", ":"], ("Er", "liest", ":"), (0, 1, 1, 2)),
        (["Er liest", ":"], ("Er liest", ":"), (0, 1)),
        (["Er", " liest:"], ("Er", "liest:"), (0, 1)),
        (["猫が", "庭", "で"], ("猫が", "庭", "で"), (0, 1, 2)),
        ([" "], ("·",), (0,)),
    ],
)
def test_words_are_what_the_pieces_spell(
    pieces: list[str], labels: tuple[str, ...], of_piece: tuple[int, ...]
) -> None:
    ends = np.cumsum([len(piece) for piece in pieces]).tolist()
    words = words_of("".join(pieces), list(zip([0, *ends], ends, strict=False)))
    assert (words.labels, words.of_piece) == (labels, of_piece)


def test_a_word_is_looked_at_by_sum_and_looks_by_mean() -> None:
    rows, columns = Words(("a", "b"), (0, 0, 1)), Words(("x", "y"), (0, 1, 1))
    weights = np.array([[0.1, 0.2, 0.7], [0.5, 0.3, 0.2], [0.0, 0.6, 0.4]])
    assert join(weights, rows, columns) == pytest.approx(np.array([[0.3, 0.7], [0.0, 1.0]]))


def test_symbols_at_the_ends_are_words_of_their_own() -> None:
    words = Words(("ab", "c"), (0, 0, 1)).with_ends("<s>", "</s>")
    assert words == Words(("<s>", "ab", "c", "</s>"), (0, 1, 1, 2, 3))
    assert Words((), ()).with_ends(None, "</s>") == Words(("</s>",), (0,))
