import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.data.pairs import Ledger, Pairs
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


def test_sides_of_unequal_length_are_refused() -> None:
    with pytest.raises(DataError, match="2 sources, 1 targets"):
        Pairs(["a", "b"], ["c"])


def test_the_ledger_counts_and_lists(tmp_path: Path) -> None:
    ledger = Ledger()
    ledger.add("train", 3, "blank side", "source")
    ledger.add("train", 5, "blank side", "both")
    ledger.add("train", 7, "sentence also in test", "target", dropped=False)
    assert ledger.totals() == {
        "train: blank side, left out": 2,
        "train: sentence also in test, kept": 1,
    }
    ledger.write(tmp_path / "ledger.jsonl")
    rows = [json.loads(row) for row in (tmp_path / "ledger.jsonl").read_text().splitlines()]
    assert [(row["line"], row["side"], row["dropped"]) for row in rows] == [
        (3, "source", True),
        (5, "both", True),
        (7, "target", False),
    ]
