import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.data.pairs import Pairs
from kakehashi.errors import DataError

SENTENCES = st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3)), max_size=4)


def pairs_of(rows: list[tuple[str, str]]) -> Pairs:
    return Pairs([s for s, _ in rows], [t for _, t in rows])


@given(SENTENCES, SENTENCES)
def test_equal_digests_are_equal_pairs(
    first: list[tuple[str, str]], second: list[tuple[str, str]]
) -> None:
    assert (pairs_of(first).digest() == pairs_of(second).digest()) == (first == second)


def test_a_digest_tells_where_a_sentence_ends() -> None:
    assert Pairs(["ab", "c"], ["", ""]).digest() != Pairs(["a", "bc"], ["", ""]).digest()
    assert Pairs(["a"], ["b"]).digest() != Pairs(["a"], ["b"]).swapped().digest()


def test_selection_keeps_line_numbers() -> None:
    pairs = Pairs(["a", "b", "c"], ["x", "y", "z"], "f", range(2, 5)).select([2, 0])
    assert (pairs.source, pairs.target, list(pairs.lines)) == (["c", "a"], ["z", "x"], [4, 2])
    assert pairs.swapped().source == ["z", "x"]
    assert [pairs.place(i) for i in range(2)] == [("f", 4), ("f", 2)]


def test_sides_of_unequal_length_are_refused() -> None:
    with pytest.raises(DataError, match="2 sources, 1 targets"):
        Pairs(["a", "b"], ["c"])
