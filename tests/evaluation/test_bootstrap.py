"""Two systems on one test set: sacreBLEU's paired bootstrap, in little memory."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest

from kakehashi.evaluation import Metric, evaluate
from kakehashi.evaluation.bootstrap import p_value, resample

KEYS = ("bleu", "chrf", "ter")


@pytest.fixture(scope="module")
def metrics() -> list[Metric]:
    return [Metric(key) for key in KEYS]


def test_equals_sacrebleus_paired_test(
    systems: tuple[list[str], list[str]], small_corpus: Any, metrics: list[Metric]
) -> None:
    ours = evaluate(systems, small_corpus.target, metrics)
    theirs = {"BLEU": BLEU(force=True), "chrF2": CHRF(), "TER": TER()}
    named = [("bad", systems[1]), ("good", systems[0])]
    signatures, found = PairedTest(named, theirs, [small_corpus.target], test_type="bs")()
    for j, name in enumerate(theirs):
        baseline, system = found[name]
        for score, expected in ((ours.scores[1][j], baseline), (ours.scores[0][j], system)):
            assert score.value == pytest.approx(expected.score, abs=1e-9)
            assert score.low == pytest.approx(expected.mean - expected.ci, abs=1e-4)
            assert score.high == pytest.approx(expected.mean + expected.ci, abs=1e-4)
            assert score.signature == str(signatures[name])
        assert ours.differences[j].value == pytest.approx(system.score - baseline.score)
        # a sample at the edge may fall to either side of it: theirs are in single precision
        assert ours.differences[j].p_value == pytest.approx(system.p_value, abs=2.5 / 1001)
    p_values = [difference.p_value for difference in ours.differences]
    assert min(p_values) < 0.05
    assert ours.differences[0].value > 0 > ours.differences[2].value


def test_a_system_does_not_differ_from_itself(
    systems: tuple[list[str], list[str]], small_corpus: Any, metrics: list[Metric]
) -> None:
    """sacreBLEU gives p = 1/1001 here, as if the difference of 0 were beyond doubt."""
    same = evaluate([systems[0], systems[0]], small_corpus.target, metrics, n_bootstrap=100)
    assert [(d.value, d.p_value) for d in same.differences] == [(0.0, 1.0)] * 3
    _, found = PairedTest(
        [("a", systems[0]), ("b", systems[0])], {"b": BLEU()}, [small_corpus.target], "bs", 100
    )()
    assert found["BLEU"][1].p_value == pytest.approx(1 / 101)


def test_swapping_the_systems_turns_the_difference_round(
    systems: tuple[list[str], list[str]], small_corpus: Any, metrics: list[Metric]
) -> None:
    one = evaluate(systems, small_corpus.target, metrics, n_bootstrap=100)
    other = evaluate(systems[::-1], small_corpus.target, metrics, n_bootstrap=100)
    assert one.scores == other.scores[::-1]
    for a, b in zip(one.differences, other.differences, strict=True):
        assert (a.value, a.p_value) == (pytest.approx(-b.value), b.p_value)


def test_p_value_by_hand() -> None:
    first, second = np.array([5.0, 6.0, 7.0, 9.0]), np.array([4.0, 4.0, 4.0, 5.0])
    # differences 1 2 3 4, less their mean 2.5: -1.5 -0.5 0.5 1.5
    assert p_value(first, second, 1.6) == 1 / 5
    assert p_value(first, second, -1.5) == 2 / 5
    assert p_value(first, second, 0.0) == 3 / 5


def test_blocks_of_lines_change_nothing(
    systems: tuple[list[str], list[str]],
    small_corpus: Any,
    metrics: list[Metric],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = evaluate(systems, small_corpus.target, metrics, n_bootstrap=50)
    done: list[int] = []
    monkeypatch.setattr("kakehashi.evaluation.metrics._BLOCK", 7)
    cut = evaluate(systems, small_corpus.target, metrics, n_bootstrap=50, advance=done.append)
    assert cut.scores == whole.scores
    assert cut.differences == whole.differences
    assert sum(done) == 2 * 3 * 132
    assert max(done) == 7


def test_resampling_takes_little_memory(metrics: list[Metric]) -> None:
    """All resampled sets at once would be 100 x 20,000 x 60 counts: 960 MB."""
    counts = [np.ones((20_000, k)) for k in (10, 18, 2)]
    tracemalloc.start()
    resample(metrics, [counts, counts], 100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6


@pytest.mark.parametrize("lowercase", [False, True])
def test_sentence_scores_are_sacrebleus(
    systems: tuple[list[str], list[str]], small_corpus: Any, lowercase: bool
) -> None:
    hypotheses = [*systems[1][:20], "", "Yes", "a b", "THE DOG"]
    references = [*small_corpus.target[:20], "No.", "Yes", "a b", "the dog"]
    metrics = [Metric(key, lowercase=lowercase) for key in KEYS]
    found = evaluate([hypotheses], references, metrics, n_bootstrap=0).sentence_scores(0)
    theirs = {
        "bleu": BLEU(lowercase, effective_order=True),
        "chrf": CHRF(lowercase=lowercase),
        "ter": TER(),
    }
    for key, metric in theirs.items():
        expected = [
            metric.sentence_score(h, [r]).score for h, r in zip(hypotheses, references, strict=True)
        ]
        assert found[key] == pytest.approx(expected)
