"""Where a long line is cut, and how the translations of its parts are put together."""

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.data.reading import is_blank
from kakehashi.inference.parts import parts
from kakehashi.inference.translation import Candidate, join_parts


def visible(text: str) -> str:
    return "".join(c for c in text if not is_blank(c))


@given(
    line=st.text(st.sampled_from("ab .,。\u200b\u3000\u0301é猫"), max_size=80),
    most=st.integers(1, 9),
)
def test_parts_fit_and_nothing_visible_is_lost(line: str, most: int) -> None:
    found = list(parts(line, lambda part: len(part) <= most))
    assert visible("".join(found)) == visible(line)
    assert all(len(part) <= most for part in found)
    assert not any(is_blank(part) for part in found)
    if len(line) <= most and not is_blank(line):
        assert found == [line]


@pytest.mark.parametrize(
    ("line", "cut"),
    [
        ("Der Mond scheint heute, es ist still hier.", 24),
        ("Der Mond scheint heute Nacht", 17),
        ("月が昇ると、山は静かです", 6),
        ("אבגדה, וזחטיכ", 7),
        ("aaaaaaaaaa", 5),
    ],
)
def test_cut_after_a_clause_else_a_word(line: str, cut: int) -> None:
    first, second = parts(line, lambda part: len(part) < len(line))
    assert (first, second) == (line[:cut], line[cut:])


@pytest.mark.parametrize(
    "line", ["aae\u0301aa", "a👩\u200d👧aaa", "aa👩\u200d👧aa", "aaa👩\u200d👧a"]
)
def test_what_belongs_together_is_not_cut(line: str) -> None:
    first, second = parts(line, lambda part: len(part) < len(line))
    assert first + second == line
    for whole in ("e\u0301", "👩\u200d👧"):
        assert (whole in line) == (whole in first or whole in second)


def test_parts_of_a_long_line_are_of_like_length() -> None:
    found = [len(part) for part in parts("wort " * 3000, lambda part: len(part) <= 500)]
    assert sum(found) == 15000
    assert min(found) >= 500 / 4


@given(
    lists=st.lists(
        st.lists(st.integers(-40, 0), min_size=1, max_size=4).map(sorted), min_size=1, max_size=4
    ),
    n_best=st.integers(1, 5),
)
def test_the_best_of_all_combinations(lists: list[list[int]], n_best: int) -> None:
    hypotheses = [
        [(f"{place}{rank}", s / 4) for rank, s in enumerate(row[::-1])]
        for place, row in enumerate(lists)
    ]
    candidates = [[Candidate(t, s, 2 * s) for t, s in row] for row in hypotheses]
    found = join_parts(candidates, n_best, ["-"] * (len(lists) - 1))
    every = sorted(
        (sum(s for _, s in way) / len(way) for way in product(*hypotheses)), reverse=True
    )
    assert [way.score for way in found] == pytest.approx(every[:n_best])
    assert found[0].text == "-".join(row[0][0] for row in hypotheses)
    scores = {
        "-".join(t for t, _ in way): sum(s for _, s in way) / len(way)
        for way in product(*hypotheses)
    }
    assert all(scores[way.text] == pytest.approx(way.score) for way in found)
    totals = [way.log_probability for way in found]
    assert totals == pytest.approx([2 * len(hypotheses) * way.score for way in found])
    assert len({way.text for way in found}) == len(found)


def test_draws_of_parts_stay_together_in_their_order() -> None:
    rows = [[("a", -2.0), ("b", -1.0), ("c", -9.0)], [("x", -5.0), ("y", -7.0)]]
    parts = [[Candidate(text, score, score) for text, score in row] for row in rows]
    for n_best in (1, 2, 3, 5):
        found = join_parts(parts, n_best, [" "], ranked=False)
        assert [each.text for each in found] == ["a x", "b y", "c y"][:n_best]
    assert join_parts(parts, 2, [" "], ranked=False)[0].score == -3.5


def test_parts_without_scores_are_joined_all_the_same() -> None:
    part = [Candidate("a", math.nan, math.nan)]
    (found,) = join_parts([part, part], 1, [" "])
    assert found.text == "a a"
    assert math.isnan(found.score)


def test_equal_sums_stay_in_the_order_of_the_parts() -> None:
    part = [Candidate("a", -0.1, 0.0), Candidate("b", -0.3, 0.0), Candidate("c", -0.7, 0.0)]
    found = join_parts([part] * 3, 7, ["", ""])
    assert [each.text for each in found] == ["aaa", "aab", "aba", "baa", "abb", "bab", "bba"]


def test_many_parts_with_many_candidates() -> None:
    """A hundred parts of a hundred: the ways number 10 ** 200."""
    part = [Candidate(str(k), -k / 7, 0.0) for k in range(100)]
    found = join_parts([part] * 100, 100, [" "] * 99)
    assert [each.score for each in found] == sorted((c.score for c in found), reverse=True)
    assert found[-1].text.count("1") == 1 and len({each.text for each in found}) == 100


def test_an_empty_translation_of_a_part_leaves_no_gap() -> None:
    parts = [Candidate("a", -1.0, -3.0), Candidate("", -2.0, -2.0), Candidate("b", -3.0, -6.0)]
    joined = Candidate("a b", -2.0, -11.0)
    assert join_parts([[part] for part in parts], 1, ["\t", " "]) == (joined,)


def test_joined_parts_keep_their_pieces_and_alignments() -> None:
    one = Candidate("a b", -1.0, -3.0, ("_a", "_b", "</s>"), (-1.0, -1.5, -0.5), ((1, 0), (0, 1)))
    two = Candidate("c", -3.0, -6.0, ("_c", "</s>"), (-5.0, -1.0), ((4, 0),))
    (joined,) = join_parts([[one], [two]], 1, [" "])
    assert joined.tokens == ("_a", "_b", "</s>", "_c", "</s>")
    assert joined.token_log_probabilities == (-1.0, -1.5, -0.5, -5.0, -1.0)
    assert joined.alignment == ((1, 0), (0, 1), (4, 3))
    assert joined.confidence == pytest.approx(math.exp(-9.0 / 5))
