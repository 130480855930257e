"""Means of checkpoints against exact arithmetic, and what has no mean."""

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.errors import TrainingError
from kakehashi.training.mean import Mean, tied_names
from kakehashi.training.snapshot import Snapshot

TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
FACTS = {"run": "3f", "seed": 7, "tokenizer_sha256": "ab12"}


def snapshot(name: str, weights: dict[str, torch.Tensor], **facts) -> Snapshot:
    return Snapshot(Path(f"{name}.ckpt"), 3, weights, FACTS | facts)


def mean_of(*all_weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    mean = Mean()
    for i, weights in enumerate(all_weights):
        mean.add(snapshot(str(i), weights))
    return mean.weights()


def bits(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().view(torch.uint8).numpy().tobytes()


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(finite, min_size=1, max_size=9), st.integers(1, 100), st.sampled_from(TYPES))
def test_the_mean_of_copies_is_the_copy_bit_for_bit(values, k, dtype):
    weight = torch.tensor([*values, -0.0, 0.0], dtype=torch.float64).to(dtype)
    weight = torch.where(weight.isfinite(), weight, 1.0)  # too large for the type
    found = mean_of(*[{"w": weight.clone()} for _ in range(k)])["w"]
    assert found.dtype == dtype
    assert bits(found) == bits(weight)


small = st.floats(width=32, min_value=-1e4, max_value=1e4)


@given(st.lists(small, min_size=1, max_size=40))
def test_the_mean_is_the_exact_mean_rounded(values):
    found = mean_of(*[{"w": torch.tensor([v])} for v in values])["w"]
    exact = sum(map(Fraction, values)) / len(values)
    # half a step of float32, and what the sums in float64 may have lost
    half = Fraction(float(np.spacing(np.float32(abs(float(exact)))))) / 2
    lost = Fraction(math.ulp(max(map(abs, values)))) * 4 * len(values)
    assert abs(Fraction(float(found)) - exact) <= half + lost


@given(st.lists(small, min_size=2, max_size=20), st.randoms())
def test_the_order_hardly_matters(values, random):
    shuffled = random.sample(values, len(values))
    one, other = (
        mean_of(*[{"w": torch.tensor([v])} for v in vs])["w"] for vs in (values, shuffled)
    )
    torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-9)


def test_half_precision_does_not_overflow_on_the_way():
    weights = [torch.full((3,), v, dtype=torch.float16) for v in (65504.0, 65504.0, 65472.0)]
    found = mean_of(*[{"w": w} for w in weights])["w"]
    # (2 * 65504 + 65472) / 3 = 65493.3; the steps of float16 are 32 there
    assert found.tolist() == [65504.0] * 3


def test_ties_are_kept():
    tables = [torch.full((5, 3), float(i)) for i in range(3)]
    found = mean_of(*[{"output": t, "embedding": t, "own": t.clone()} for t in tables])
    assert found["output"].data_ptr() == found["embedding"].data_ptr()
    assert found["own"].data_ptr() != found["output"].data_ptr()
    assert all(torch.equal(weight, tables[1]) for weight in found.values())


def test_two_halves_of_one_memory_are_not_tied():
    both = torch.arange(6.0)
    weights = {"left": both[:3], "right": both[3:], "empty": both[:0], "void": both[:0]}
    assert tied_names(weights) == {n: n for n in weights}
    found = mean_of(weights, weights)
    assert found["left"].tolist() == [0, 1, 2]
    assert found["right"].tolist() == [3, 4, 5]


def test_whole_numbers_and_truths_are_taken_as_they_are():
    weights = {"steps": torch.tensor([3, 2**40]), "used": torch.tensor([True, False])}
    found = mean_of(weights, {n: w.clone() for n, w in weights.items()})
    for name, weight in weights.items():
        assert found[name].dtype == weight.dtype
        assert torch.equal(found[name], weight)


def test_weights_that_change_after_they_were_added_change_nothing():
    live = torch.ones(2)
    mean = Mean()
    for value in (1.0, 2.0, 6.0):
        live.fill_(value)
        mean.add(snapshot("live", {"w": live}))
    assert mean.weights()["w"].tolist() == [3.0, 3.0]


TABLE = torch.ones(4, 2)


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ({"a": TABLE}, r"second\.ckpt has no b"),
        ({"a": TABLE, "b": TABLE.clone(), "c": TABLE.clone()}, r"first\.ckpt has no c"),
        (
            {"a": TABLE, "b": torch.ones(4, 3)},
            r"b has shape \[4, 2\] in the first and \[4, 3\] in the second",
        ),
        (
            {"a": TABLE, "b": torch.ones(4, 2, dtype=torch.float64)},
            r"b is torch.float32 in the first and torch.float64 in the second",
        ),
        ({"a": TABLE, "b": TABLE}, "b is tied in one of them only"),
    ],
)
def test_other_models_have_no_mean(second, said):
    mean = Mean()
    mean.add(snapshot("first", {"a": TABLE, "b": TABLE.clone()}))
    with pytest.raises(TrainingError, match=rf"first\.ckpt and second\.ckpt hold .*{said}"):
        mean.add(snapshot("second", second))
    assert mean.weights().keys() == {"a", "b"}


def test_other_whole_numbers_have_no_mean():
    mean = Mean()
    mean.add(snapshot("first", {"n": torch.tensor([1, 2])}))
    with pytest.raises(TrainingError, match="n is not the same, and whole numbers have no"):
        mean.add(snapshot("second", {"n": torch.tensor([1, 3])}))


@pytest.mark.parametrize(
    ("fact", "value", "said"),
    [
        ("run", "4e", "run is 3f in the first and 4e in the second"),
        ("seed", 8, "seed is 7 in the first and 8 in the second"),
        ("tokenizer_sha256", "cd34", "tokenizer_sha256 is ab12 in the first and cd34 in the"),
    ],
)
def test_other_runs_have_no_mean(fact, value, said):
    mean = Mean()
    mean.add(snapshot("first", {"w": TABLE}))
    with pytest.raises(TrainingError, match=rf"first\.ckpt and second\.ckpt are of .*{said}"):
        mean.add(snapshot("second", {"w": TABLE}, **{fact: value}))


def test_of_nothing_there_is_no_mean():
    with pytest.raises(TrainingError, match="there are no checkpoints"):
        Mean().weights()
