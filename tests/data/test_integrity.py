import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kakehashi.data.integrity import (
    drop_blank,
    enter_controls,
    normalised,
    overlaps,
    split_pairs,
)
from kakehashi.data.ledger import Ledger
from kakehashi.data.pairs import Pairs
from kakehashi.errors import DataError


def test_normalisation() -> None:
    assert normalised("Was?  Ein HUT!") == normalised("was, ein hut") == "waseinhut"
    assert normalised("Ｔｏｋｙｏ ２０２０") == "tokyo2020"
    assert normalised("STRASSE") == normalised("Straße")
    assert normalised("?!") == "?!"


@pytest.mark.parametrize(
    ("one", "other"),
    [("दिन", "दान"), ("ปี", "ปู"), ("မိ", "မု"), ("মা", "মি"), ("e\u0323\u0302x", "e\u0323x")],
)
def test_marks_that_are_read_make_another_sentence(one: str, other: str) -> None:
    assert normalised(one) != normalised(other)
    assert normalised(f"«{one}»!") == normalised(one)
    pairs = Pairs([one, "x"], ["a", "b"])
    assert overlaps(pairs, [Pairs([other], ["c"])]) == [{}]
    assert overlaps(pairs, [Pairs([f"{one}."], ["c"])]) == [{0: "source"}]


def test_marks_that_only_choose_a_look_do_not() -> None:
    assert normalised("葛\U000e0100城 1\ufe0f") == normalised("葛城 1") == "葛城1"
    assert normalised("ᠠ\u180b") == normalised("ᠠ")
    # composed or not
    assert normalised("Ä o\u0308") == normalised("A\u0308 ö") == "äö"


# Few distinct sentences: pairs share them often, and long chains of pairs arise.
GRAPHS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=12, max_size=60)


@given(GRAPHS, st.integers(0, 4), st.integers(0, 4), st.integers(0, 3))
def test_no_sentence_is_in_two_splits(
    edges: list[tuple[int, int]], n_valid: int, n_test: int, seed: int
) -> None:
    pairs = Pairs([f"Satz {a}." for a, _ in edges], [f"Sentence {b}!" for _, b in edges])
    try:
        split = split_pairs(pairs, n_valid, n_test, seed)
    except DataError:
        assume(False)
        raise
    assert (len(split.valid), len(split.test)) == (n_valid, n_test)
    parts = (split.train, split.valid, split.test)
    lines = [line for part in parts for line in part.lines]
    assert sorted(lines) == list(pairs.lines)
    for part in parts:
        assert list(part.lines) == sorted(part.lines)
        assert part.source == [pairs.source[line - 1] for line in part.lines]
        assert part.target == [pairs.target[line - 1] for line in part.lines]
    for i, one in enumerate(parts):
        for other in parts[i + 1 :]:
            assert not set(map(normalised, one.source)) & set(map(normalised, other.source))
            assert not set(map(normalised, one.target)) & set(map(normalised, other.target))
            assert overlaps(one, [other]) == [{}]


def chains(n: int) -> Pairs:
    """Pairs of which each three in a row share a sentence."""
    source = [f"Satz {i // 3}" for i in range(n)]
    return Pairs(source, [f"Sentence {i}" for i in range(n)])


def test_the_mirror_image_is_split_alike() -> None:
    pairs = chains(90)
    forward = split_pairs(pairs, 6, 9, 0)
    backward = split_pairs(pairs.swapped(), 6, 9, 0, target_first=True)
    assert forward.test.source == backward.test.target
    assert forward.valid.target == backward.valid.source
    assert forward.train.source == backward.train.target


def test_the_seed_draws_another_split_and_the_same_one_the_same() -> None:
    pairs = chains(90)
    drawn = [list(split_pairs(pairs, 6, 9, seed).test.lines) for seed in (0, 0, 1, 2)]
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2] != drawn[3]


def test_too_few_pairs_are_an_error_with_counts() -> None:
    with pytest.raises(DataError, match="from 9 pairs 3 for valid and 6 for test"):
        split_pairs(chains(9), 3, 6)
    # Components of three can't make four.
    with pytest.raises(DataError, match="found 0 and 3, 27 left"):
        split_pairs(chains(30), 0, 4)


def test_blank_sides_go_in_pairs_into_the_ledger() -> None:
    pairs = Pairs(["a", " ", "c", "\u200b"], ["x", "y", "", "\t"], "f")
    ledger = Ledger()
    kept = drop_blank(pairs, "train", ledger)
    assert (kept.source, kept.target, list(kept.lines)) == (["a"], ["x"], [1])
    entries = [(entry.line, entry.side) for entry in ledger]
    assert entries == [(2, "source"), (3, "target"), (4, "both")]


def test_overlaps_name_the_side() -> None:
    train = Pairs(["Ein Hut.", "Zwei", "Drei", "Vier"], ["a hat", "two", "three", "four"])
    held_out = Pairs(["ein hut", "fünf", "VIER!"], ["A hat?", "Three", "something else"])
    assert overlaps(train, [held_out]) == [{0: "both", 2: "target", 3: "source"}]


def test_controls_are_told_and_left_alone() -> None:
    source = ["a\x00b", "ü\u00a0 犬 \u200b", "c\td", "", "x\ufeff\x0cy", "\x00\x00", "a\ud800b"]
    target = ["a", "\u00ad", "c\td", "\u2028", "y\x0c", "z", "\udfff 🙂"]
    pairs = Pairs(list(source), list(target), "f")
    ledger = Ledger()
    enter_controls(pairs, "test", ledger)
    assert (pairs.source, pairs.target) == (source, target)
    found = [(entry.line, entry.reason, entry.side) for entry in ledger]
    assert found == [
        (1, "control character U+0000", "source"),
        (3, "control character U+0009", "both"),
        (4, "line separator U+2028", "target"),
        (5, "control character U+000C", "both"),
        (5, "zero width no-break space U+FEFF", "source"),
        (6, "control character U+0000", "source"),
        (7, "half a surrogate pair U+D800", "source"),
        (7, "half a surrogate pair U+DFFF", "target"),
    ]
    assert {entry.action for entry in ledger} == {"kept"}
    assert str(ledger.totals()[0]) == ("test: control character U+0000, kept: 2 pairs (lines 1, 6)")
