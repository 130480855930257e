"""Time budgets: the arithmetic by brute force, the callback on a clock that is made up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.errors import ConfigError
from kakehashi.training import duration, updates
from kakehashi.training.config import (
    AveragingConfig,
    CallbacksConfig,
    ObjectiveConfig,
    OptimizerConfig,
    TrainerConfig,
)
from kakehashi.training.duration import TimeBudget, check_budget, updates_that_fit
from kakehashi.training.module import TranslationTask
from kakehashi.training.plan import Plan
from kakehashi.training.schedule import Schedule, ScheduleConfig, settled_updates


@given(
    done=st.integers(1, 30),
    left=st.floats(0, 200),
    pace=st.floats(0.1, 3),
    cost=st.floats(0, 10),
    every=st.one_of(st.floats(0.05, 0.9), st.integers(1, 40)),
)
def test_fits_as_many_updates_as_possible(done, left, pace, cost, every):
    plan = Plan(None, every)

    def seconds(total):
        return (total - done) * pace + (plan.validations(done, total) + 1) * cost

    total = updates_that_fit(done, left, pace, cost, plan, extra_validations=1)
    assert total >= done
    assert total == done or seconds(total) <= left
    # a few more may fit by luck, because fewer validations fall into a longer run; a lot cannot
    most = max((t for t in range(done, done + 2100) if seconds(t) <= left), default=done)
    assert total >= done + 0.7 * (most - done) - (3 + 3 * cost / pace)


class Clock:
    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


class FakeTrainer:
    """As much of a trainer as the callback looks at."""

    is_global_zero = True
    global_step = 0

    class strategy:  # noqa: N801
        @staticmethod
        def broadcast(value):
            return value

    class fit_loop:  # noqa: N801
        class epoch_loop:  # noqa: N801
            max_steps = -1


def simulate(monkeypatch, numbers, tiny_model, *, pace, validation, schedule, **trainer):
    """Train on a made-up clock; returns (plan, seconds the whole run took, update of the fix)."""
    clock = Clock()
    for module in (duration, updates):
        monkeypatch.setattr(module, "time", clock)
    config = TrainerConfig(**trainer)
    callbacks = CallbacksConfig(AveragingConfig("none"))
    plan = Plan(None, config.validate_every)
    made = Schedule(schedule, None)
    validator = numbers.validator()
    probes = numbers.batches()
    share = sum(len(b.index) for b in probes) / len(validator.references)
    monkeypatch.setattr(
        type(validator),
        "visit",
        lambda *_: setattr(clock, "now", clock.now + validation * share / len(probes)),
    )
    task = TranslationTask(tiny_model, ObjectiveConfig(), OptimizerConfig(), made, validator, {})
    budget = TimeBudget(plan, made, config, callbacks, validator, probes, batches_per_epoch=50)
    fake = FakeTrainer()
    budget.on_train_start(fake, task)
    fixed = None
    while plan.total is None or fake.global_step < plan.total:
        # the first updates take longer
        clock.now += pace * (3 if fake.global_step < 3 else 1)
        fake.global_step += 1
        budget.on_train_batch_end(fake, task, None, None, 0)
        if plan.total is not None and fixed is None:
            fixed = fake.global_step
        if plan.validates_at(fake.global_step):
            budget.on_validation_start(fake, task)
            clock.now += validation
            budget.on_validation_end(fake, task)
    assert made.total == plan.total == fake.fit_loop.epoch_loop.max_steps
    return plan, clock.now - 100.0, fixed


@pytest.mark.parametrize("every", [0.1, 0.25, 37])
@pytest.mark.parametrize(
    "schedule",
    [
        ScheduleConfig("linear", warmup_updates=40, plateau=0.4),
        ScheduleConfig("cosine", warmup_updates=30),
        ScheduleConfig("inverse_square_root", warmup_updates=400),
    ],
)
def test_the_budget_is_kept(monkeypatch, numbers, tiny_model, every, schedule):
    plan, seconds, fixed = simulate(
        monkeypatch,
        numbers,
        tiny_model,
        pace=0.3,
        validation=4.0,
        schedule=schedule,
        max_minutes=5.0,
        validate_every=every,
    )
    assert 0.97 * 300 < seconds < 300.001
    assert fixed <= settled_updates(plan.total, schedule)
    if every < 1:
        assert fixed <= every * plan.total


def test_never_more_epochs_than_the_cap(monkeypatch, numbers, tiny_model):
    plan, seconds, _ = simulate(
        monkeypatch,
        numbers,
        tiny_model,
        pace=0.01,
        validation=0.1,
        schedule=ScheduleConfig("linear"),
        max_minutes=5.0,
        epochs_cap=60,
        accumulate=1,
    )
    assert plan.total == 60 * 50
    assert seconds < 300


def test_a_budget_too_small_for_anything_still_ends(monkeypatch, numbers, tiny_model):
    schedule = ScheduleConfig("linear", plateau=0.5)
    plan, _, fixed = simulate(
        monkeypatch,
        numbers,
        tiny_model,
        pace=1.0,
        validation=5.0,
        schedule=schedule,
        max_minutes=0.05,
    )
    assert fixed <= settled_updates(plan.total, schedule)
    assert plan.total <= 10


@pytest.mark.parametrize(
    "schedule",
    [
        ScheduleConfig("cosine", warmup_updates=9),
        ScheduleConfig("linear", plateau=0.0),
        ScheduleConfig("warmup_stable_decay", decay=1.0),
    ],
)
def test_schedules_that_need_the_total_at_once_are_refused(schedule):
    with pytest.raises(ConfigError, match=r"trainer\.max_minutes"):
        check_budget(schedule)
