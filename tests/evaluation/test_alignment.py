"""Alignment error rates, held against the formula counted by hand, and published figures."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.data.reading import read_lines
from kakehashi.errors import DataError, EvaluationError
from kakehashi.evaluation.alignment import alignment_score
from kakehashi.evaluation.links import (
    Gold,
    Symmetrisation,
    gold_links,
    pharaoh_links,
    symmetrise,
    write_links,
)

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("KAKEHASHI_SHARED", ROOT.parent / "shared")) / "data" / "alignment"
LINKS = st.frozensets(st.tuples(st.integers(0, 4), st.integers(0, 6)), max_size=13)


def test_a_sentence_counted_by_hand() -> None:
    gold = Gold(frozenset({(0, 0), (1, 2)}), frozenset({(0, 0), (1, 2), (2, 2), (3, 1)}))
    found = frozenset({(0, 0), (2, 2), (2, 3)})
    score = alignment_score([found], [gold])
    assert score.precision == pytest.approx(100 * 2 / 3)
    assert score.recall == pytest.approx(50.0)
    assert score.aer == pytest.approx(100 * (1 - (1 + 2) / (3 + 2)))
    assert (score.links, score.pairs) == (3, 1)


@given(st.lists(st.tuples(LINKS, LINKS), min_size=1, max_size=5))
def test_bounds_and_perfection(pairs: list[tuple[frozenset, frozenset]]) -> None:
    gold = [Gold(sure, sure) for sure, _ in pairs]
    if not any(g.sure for g in gold):
        with pytest.raises(EvaluationError, match="no sure link"):
            alignment_score([found for _, found in pairs], gold)
        return
    score = alignment_score([found for _, found in pairs], gold, n_samples=40)
    assert 0 <= score.aer <= 100
    assert alignment_score([g.sure for g in gold], gold, n_samples=40).aer == 0
    # Where everything possible is sure, it is the complement of the F1 score.
    precision, recall = score.precision, score.recall
    if score.links and precision + recall:
        f1 = 2 * precision * recall / (precision + recall)
        assert score.aer == pytest.approx(100 - f1)


def test_unequal_counts_are_refused() -> None:
    with pytest.raises(EvaluationError, match="of 2 sentence pairs and gold of 1"):
        alignment_score([frozenset(), frozenset()], [Gold(frozenset(), frozenset())])


@given(LINKS, LINKS)
def test_symmetrised_alignments_lie_between_intersection_and_union(
    forward: frozenset, backward: frozenset
) -> None:
    both, either = forward & backward, forward | backward
    grown = symmetrise(forward, backward, Symmetrisation.grow_diag)
    final = symmetrise(forward, backward, Symmetrisation.grow_diag_final_and)
    assert symmetrise(forward, backward, Symmetrisation.intersection) == both
    assert symmetrise(forward, backward, Symmetrisation.union) == either
    assert both <= grown <= final <= either
    assert symmetrise(forward, forward, Symmetrisation.grow_diag) == forward
    for i, j in grown - both:
        assert any((i + a, j + b) in grown for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b)
    rows, columns = {i for i, _ in final}, {j for _, j in final}
    assert not any(i not in rows and j not in columns for i, j in either)


def test_growing_by_hand() -> None:
    forward = frozenset({(0, 0), (1, 1), (2, 1), (4, 5)})
    backward = frozenset({(0, 0), (1, 1), (1, 2), (3, 4)})
    grown = symmetrise(forward, backward, Symmetrisation.grow_diag)
    assert grown == {(0, 0), (1, 1), (2, 1), (1, 2)}
    final = symmetrise(forward, backward, Symmetrisation.grow_diag_final_and)
    assert final == grown | {(4, 5), (3, 4)}


def test_the_written_form() -> None:
    gold = gold_links(["2-3 1p1", "", "1-1"], "gold", first=1)
    assert gold[0] == Gold(frozenset({(1, 2)}), frozenset({(1, 2), (0, 0)}))
    assert gold[1] == Gold(frozenset(), frozenset())
    with pytest.raises(DataError, match="found, line 1: '1p1' is no link; one is 3-4"):
        pharaoh_links(["1p1"], "found")
    with pytest.raises(DataError, match="gold, line 2: '3:4' is no link"):
        gold_links(["0-0", "1-2 3:4"], "gold")
    with pytest.raises(DataError, match=r"line 1: '0-0' names word 0.*number 1"):
        pharaoh_links(["0-0"], "found", first=1)
    links = frozenset({(3, 1), (0, 2)})
    assert write_links(links) == "0-2 3-1"
    assert pharaoh_links([write_links(links)], "found") == [links]


@pytest.mark.parametrize(("name", "published"), [("enfr", 4.1), ("jaen", 37.4), ("roen", 20.7)])
def test_the_published_error_rates_of_an_aligner(name: str, published: float) -> None:
    if not FOLDER.is_dir():
        pytest.skip(f"there are no gold alignments in {FOLDER}")
    gold = gold_links(read_lines(FOLDER / f"{name}.gold"), "gold", first=1)
    found = pharaoh_links(read_lines(FOLDER / f"{name}.awesome-align.out"), "links")
    assert round(alignment_score(found, gold).aer, 1) == published
