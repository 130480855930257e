"""The schedules at points that can be worked out by hand."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.errors import ConfigError
from kakehashi.training.schedule import SHAPES, Schedule, ScheduleConfig, settled_updates


def factor(name: str, update: int, **settings: float) -> float:
    config = ScheduleConfig(name=name, **({"warmup_updates": 10} | settings))
    return Schedule(config, total=100)(update)


@pytest.mark.parametrize("name", SHAPES)
def test_warm_up_is_linear_and_ends_at_the_peak(name):
    assert factor(name, 0) == pytest.approx(0.1)
    assert factor(name, 4) == pytest.approx(0.5)
    assert factor(name, 9) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("name", "update", "settings", "expected"),
    [
        ("constant", 99, {}, 1.0),
        ("inverse_square_root", 39, {}, 0.5),
        ("inverse_square_root", 89, {}, 1 / 3),
        ("linear", 40, {"plateau": 0.4}, 1.0),
        ("linear", 70, {"plateau": 0.4}, 0.5),
        ("linear", 100, {"plateau": 0.4}, 0.0),
        ("linear", 100, {"plateau": 0.4, "final": 0.2}, 0.2),
        ("cosine", 10, {}, 1.0),
        ("cosine", 55, {}, 0.5),
        ("cosine", 40, {}, 0.75),
        ("cosine", 100, {"final": 0.1}, 0.1),
        ("warmup_stable_decay", 80, {"decay": 0.2}, 1.0),
        ("warmup_stable_decay", 85, {"decay": 0.2}, 0.5),
        ("warmup_stable_decay", 100, {"decay": 0.2}, 0.0),
    ],
)
def test_known_points(name, update, settings, expected):
    assert factor(name, update, **settings) == pytest.approx(expected)


def test_inverse_square_root_is_the_papers_rate():
    """d^-0.5 min(step^-0.5, step warmup^-1.5), scaled to a peak of one."""
    warm = 4000
    config = ScheduleConfig("inverse_square_root", warmup_updates=warm)
    for update in (0, 1999, 3999, 4000, 63_999):
        step = update + 1
        paper = min(step**-0.5, step * warm**-1.5) / warm**-0.5
        assert Schedule(config, 100_000)(update) == pytest.approx(paper)


@given(
    name=st.sampled_from(sorted(SHAPES)),
    total=st.integers(1, 2000),
    warm=st.integers(0, 300),
    plateau=st.floats(0, 1),
    decay=st.floats(0, 1),
)
def test_while_settled_the_total_has_no_say(name, total, warm, plateau, decay):
    config = ScheduleConfig(name, warm, plateau, decay)
    unknown, known = Schedule(config, None), Schedule(config, total)
    settled = settled_updates(total, config)
    assert 0 <= settled <= total
    for update in {0, settled // 2, settled}:
        assert unknown(update) == known(update)


@given(name=st.sampled_from(sorted(SHAPES)), total=st.integers(1, 500), final=st.floats(0, 1))
def test_factors_stay_between_zero_and_one_and_fall_after_the_warm_up(name, total, final):
    schedule = Schedule(ScheduleConfig(name, warmup_updates=5, final=final), total)
    factors = [schedule(update) for update in range(total + 1)]
    assert all(0 <= f <= 1 and math.isfinite(f) for f in factors)
    assert all(b <= a + 1e-12 for a, b in pairwise(factors[5:]))


def test_drives_a_torch_scheduler_over_every_group():
    a, b = (torch.nn.Parameter(torch.zeros(1)) for _ in range(2))
    optimizer = torch.optim.SGD([{"params": [a], "lr": 3.0}, {"params": [b], "lr": 5.0}])
    schedule = Schedule(ScheduleConfig("linear", warmup_updates=2, plateau=0.5), total=4)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
    rates = []
    for _ in range(4):
        rates.append([g["lr"] for g in optimizer.param_groups])
        optimizer.step()
        scheduler.step()
    assert rates == [[1.5, 2.5], [3, 5], [3, 5], [1.5, 2.5]]


@pytest.mark.parametrize(
    ("setting", "value"),
    [("name", "step"), ("warmup_updates", -1), ("plateau", 1.5), ("decay", -0.1), ("final", 2.0)],
)
def test_settings_out_of_range_are_refused(setting, value):
    with pytest.raises(ConfigError, match=f"schedule.{setting}"):
        ScheduleConfig(**{setting: value})
