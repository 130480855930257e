"""Minimum Bayes risk against the definition, one pair at a time."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kakehashi.decoding.mbr import by_expected_utility


def shared_letters(a: str, b: str) -> float:
    """Not symmetrical: the share of a's letters that b has."""
    return sum(letter in b for letter in a) / max(len(a), 1)


def pairwise(rows: Sequence[str], columns: Sequence[str]) -> npt.NDArray[np.float64]:
    assert len(set(rows)) == len(rows)  # what was drawn twice is compared once
    return np.array([[shared_letters(a, b) for b in columns] for a in rows])


@example(["", "aab", "b", "a"])
@given(st.lists(st.text(alphabet="abcd", max_size=4), min_size=1, max_size=9))
def test_expected_utility_is_the_mean_over_all_draws(samples: list[str]) -> None:
    ranked = by_expected_utility(samples, pairwise)
    assert sorted(e.text for e in ranked) == sorted(set(samples))
    for e in ranked:
        mean = sum(shared_letters(e.text, other) for other in samples) / len(samples)
        assert e.utility == pytest.approx(mean)
        assert e.count == samples.count(e.text)
        assert e.first == samples.index(e.text)
    order = [(-round(e.utility, 9), e.first) for e in ranked]
    assert order == sorted(order)


def test_the_draws_outvote_the_odd_one() -> None:
    assert by_expected_utility(["xyz", "ab", "abc", "ab"], pairwise)[0].text == "ab"
