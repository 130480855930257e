"""Distributions of lengths, and pairs whose lengths do not belong together."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.audit import Text
from kakehashi.audit.lengths import (
    QUANTILES,
    Distribution,
    distributions,
    ratio_outliers,
    spaced,
    surprise,
)


@given(st.lists(st.integers(0, 500), min_size=1))
def test_a_histogram_counts_everything_once(lengths: list[int]) -> None:
    values = np.array(lengths)
    found = Distribution.of("x", values)
    assert sum(found.counts) == len(lengths)
    assert len(found.edges) == len(found.counts) + 1
    assert np.all(np.diff(found.edges) > 0)
    assert found.edges[0] == min(lengths)
    assert found.mean == pytest.approx(float(np.mean(values)))
    assert dict(found.quantiles)[1.0] == max(lengths)
    for low, high, count in zip(found.edges, found.edges[1:-1], found.counts, strict=False):
        assert count == sum(low <= value < high for value in lengths)


def test_words_are_counted_where_spaces_divide_them(text: Any, small: Text) -> None:
    assert spaced(small.source)
    assert not spaced(["猫が座る。", "犬が走る。"])
    names = [d.what for d in distributions(text(["猫が座る。"], ["The cat sits."], "ja"))]
    assert names == [
        "source, characters",
        "target, characters",
        "target, words",
        "target / source, characters",
    ]
    words = next(d for d in distributions(small) if d.what == "target, words")
    assert dict(words.quantiles)[0.5] == np.median([len(s.split()) for s in small.target])
    assert [q for q, _ in words.quantiles] == list(QUANTILES)


def test_half_a_translation_stands_out(small: Text) -> None:
    source, target = list(small.source), list(small.target)
    assert list(ratio_outliers(small)) == []
    target[40] = "Yes."
    source[70] += " " + " ".join(source[71:75])
    (finding,) = ratio_outliers(Text(source, target, small.lines))
    assert set(finding.lines) == {41, 71}
    assert finding.lines[0] == 71  # the worst first


def test_surprise_does_not_depend_on_the_languages_own_ratio() -> None:
    rng = np.random.default_rng(5)
    source = rng.integers(20, 120, 500)
    target = np.maximum(1, source + rng.normal(0, np.sqrt(source))).astype(np.int64)
    plain = surprise(source, target)
    assert np.median(plain) == pytest.approx(0, abs=1e-9)
    assert np.mean(np.abs(plain) < 3) > 0.97
    # Three characters for each (an alphabet for an ideograph): the same judgement.
    assert np.allclose(plain, surprise(source, 3 * target), atol=1e-6)
    assert surprise(np.array([0, 5]), np.array([7, 0])).tolist() == [0, 0]
