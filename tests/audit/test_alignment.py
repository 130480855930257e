"""Shifts inside a corpus are found, located and healed; aligned corpora have none."""

import itertools
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from kakehashi.audit import Text
from kakehashi.audit.alignment import SHORTEST, alignment
from kakehashi.audit.evidence import units
from kakehashi.audit.shifts import likeliest, segments

EXTRA = "Niemand hat damit gerechnet, am wenigsten der Bäcker."


def shifts(found: list[Any]) -> list[tuple[int, int, int | None]]:
    return [(s.start, s.end, s.shift) for s in found]


def test_an_aligned_corpus_has_no_shift(small: Text, small_japanese_corpus: Any) -> None:
    assert shifts(segments(small)) == [(0, 132, 0)]
    assert list(alignment(small)) == []
    japanese = Text(small_japanese_corpus.source, small_japanese_corpus.target, range(1, 43))
    assert list(alignment(japanese)) == []


@pytest.mark.parametrize("at", [25, 50, 66, 90, 105])
@pytest.mark.parametrize("missing", ["source", "target"])
def test_a_missing_line_is_found_and_located(small: Text, at: int, missing: str) -> None:
    sides = {"source": list(small.source), "target": list(small.target)}
    del sides[missing][at]
    other = "target" if missing == "source" else "source"
    sides[other].pop()  # equal counts: nothing else tells
    text = Text(sides["source"], sides["target"], range(1, 132))
    first, second = segments(text)
    assert (first.start, first.shift) == (0, 0)
    assert second.shift == (1 if missing == "source" else -1)
    assert abs(second.start - at) <= 3
    assert second.earliest <= at + 1
    assert second.latest >= at - 1
    (finding,) = alignment(text)
    assert (finding.code, finding.severity) == ("alignment.shift", "error")
    assert finding.lines == (second.start + 1,)
    assert finding.count == 131 - second.start
    assert f"from line {second.start + 1} to the end" in finding.title
    assert f"a line is missing on the {missing} side" in finding.advice
    partner = sides["target"][second.start + second.shift]
    assert finding.examples[0].detail == f"goes with: {partner}"


@pytest.mark.parametrize("missing", ["source", "target"])
@pytest.mark.parametrize("k", [4, 6, 12])
def test_many_missing_lines_are_found_where_the_counts_are_equal(
    small: Text, missing: str, k: int
) -> None:
    sides = {"source": list(small.source), "target": list(small.target)}
    del sides[missing][50 : 50 + k]
    other = "target" if missing == "source" else "source"
    del sides[other][-k:]
    (finding,) = alignment(Text(sides["source"], sides["target"], range(1, 133 - k)))
    assert (finding.code, finding.severity) == ("alignment.shift", "error")
    assert 50 - 3 <= finding.lines[0] <= 50 + k + 3
    sign = "+" if missing == "source" else "-"
    assert finding.title.endswith(f"source line k goes with target line k {sign} {k}")
    assert f"{k} lines are missing on the {missing} side" in finding.advice


def test_a_shift_that_heals_ends_there(small: Text) -> None:
    target = list(small.target)
    del target[40]
    target.insert(88, "Nobody had reckoned with it, least of all the baker.")
    (finding,) = alignment(Text(small.source, target, small.lines))
    before, shifted, after = segments(Text(small.source, target, small.lines))
    assert [before.shift, shifted.shift, after.shift] == [0, -1, 0]
    assert abs(shifted.start - 40) <= 3
    assert abs(shifted.end - 88) <= 3
    assert f"to line {shifted.end}" in finding.title
    assert "source line k goes with target line k - 1" in finding.title


def test_two_lines_missing_at_two_places(small: Text) -> None:
    source = [*small.source[:30], EXTRA, *small.source[30:80], EXTRA, *small.source[80:]]
    found = segments(Text(source, small.target, range(1, 135)))
    assert [s.shift for s in found] == [0, -1, -2]
    assert abs(found[1].start - 31) <= 3
    assert abs(found[2].start - 82) <= 3
    told = list(alignment(Text(source, small.target, range(1, 135))))
    assert [f.code for f in told] == ["alignment.counts", "alignment.shift", "alignment.shift"]
    assert told[0].title == "134 lines of source and 132 lines of target"
    assert all("a line is missing on the target side" in f.advice for f in told[1:])


def test_sides_that_have_nothing_to_do_with_each_other_are_not_called_shifted(small: Text) -> None:
    target = list(small.target)
    random.Random(3).shuffle(target)
    assert all(
        f.code != "alignment.shift" for f in alignment(Text(small.source, target, small.lines))
    )


def test_few_pairs_are_only_counted(small: Text) -> None:
    n = SHORTEST - 1
    text = Text(small.source[:n], small.target[: n - 1], small.lines)
    assert [f.code for f in alignment(text)] == ["alignment.counts"]


def test_the_path_is_the_best_of_all_paths() -> None:
    @given(
        arrays.arrays(np.float32, (5, 3), elements=st.integers(-8, 8).map(lambda v: v / 2)),
        st.sampled_from([0.5, 2.0, 6.0]),
    )
    def check(evidence: Any, change: float) -> None:
        def worth(path: tuple[int, ...]) -> float:
            said = sum(float(evidence[i, column]) for i, column in enumerate(path))
            changes = (path[0] != 0) + sum(a != b for a, b in itertools.pairwise(path))
            return said - change * changes

        best = max(map(worth, itertools.product(range(3), repeat=5)))
        assert worth(tuple(likeliest(evidence, change))) == pytest.approx(best, abs=1e-4)

    check()


def test_units_are_words_or_pairs_of_characters() -> None:
    assert units("Der Hund, 12 Jahre!") == ["der", "hund", "12", "jahre"]
    assert units("猫が座る。Tom") == ["猫が", "が座", "座る", "tom"]
