"""Which updates are followed by a validation, and how many updates an epoch has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.errors import ConfigError
from kakehashi.training.config import TrainerConfig
from kakehashi.training.plan import Plan, updates_in


def updates(plan: Plan) -> list[int]:
    assert plan.total is not None
    return [u for u in range(1, plan.total + 1) if plan.validates_at(u)]


@pytest.mark.parametrize(
    ("total", "every", "expected"),
    [
        (10, 0.5, [5, 10]),
        (10, 0.3, [3, 6, 9, 10]),
        (11, 0.25, [3, 6, 9, 11]),
        (10, 4, [4, 8, 10]),
        (3, 0.01, [1, 2, 3]),
        (3, 7, [3]),
    ],
)
def test_validates_regularly_and_at_the_end(total, every, expected):
    assert updates(Plan(total, every)) == expected


def test_a_fraction_has_to_wait_for_the_total_and_a_number_has_not():
    assert not any(Plan(None, 0.1).validates_at(u) for u in range(1, 100))
    assert [u for u in range(1, 10) if Plan(None, 3).validates_at(u)] == [3, 6, 9]


@given(
    total=st.integers(1, 300),
    every=st.one_of(st.floats(0.01, 0.99), st.integers(1, 400)),
    after=st.integers(0, 300),
)
def test_counts_what_it_will_do(total, every, after):
    plan = Plan(total, every)
    after = min(after, total - 1)
    assert plan.validations(after, total) == sum(u > after for u in updates(plan))


@pytest.mark.parametrize(
    ("length", "expected"),
    [({"max_updates": 9}, 9), ({"max_epochs": 3}, 11), ({"max_minutes": 1.0}, None)],
)
def test_length_in_updates(length, expected):
    assert Plan.of(TrainerConfig(accumulate=3, **length), batches_per_epoch=11).total == expected
    assert updates_in(2, 11, 3) == 8


@pytest.mark.parametrize("lengths", [{}, {"max_updates": 1, "max_epochs": 1}])
def test_exactly_one_length(lengths):
    with pytest.raises(ConfigError, match="exactly one"):
        TrainerConfig(**lengths)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("max_updates", 0),
        ("clip", -1.0),
        ("accumulate", 0),
        ("validate_every", 0.0),
        ("precision", "8-bit"),
    ],
)
def test_settings_out_of_range_are_refused(setting, value):
    with pytest.raises(ConfigError, match=f"trainer.{setting}"):
        TrainerConfig(**({"max_updates": 3} | {setting: value}))


SHARES = {"max_updates": 3, "strategy": "fsdp", "devices": 2}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"strategy": "fsdp_cpu_offload"}, "the one way to spread weights over processes is fsdp"),
        ({"strategy": "deepspeed_stage_2"}, "the one way to spread weights over processes is fsdp"),
        ({"devices": 1}, "there is nothing to share"),
        ({"max_updates": None, "max_minutes": 2.0}, "in place of trainer.max_minutes=2.0"),
        ({"precision": "16-mixed"}, "trainer.precision can be 32-true or bf16-mixed"),
    ],
)
def test_what_shares_of_weights_cannot_do_is_refused(words, message):
    assert TrainerConfig(**SHARES, num_nodes=3).num_nodes == 3
    with pytest.raises(ConfigError, match=message):
        TrainerConfig(**(SHARES | words))
