"""The rules of a sentence, by themselves."""

import pytest
import torch

from kakehashi.decoding.required import Required, _automaton
from kakehashi.decoding.rules import Rules
from kakehashi.errors import ConfigError
from kakehashi.symbols import BOS, EOS, PAD


def test_missing_are_the_required_phrases_that_do_not_stand_in_a_row() -> None:
    rules = Rules(required=((5, 6), (6, 7), (9,)))
    assert rules.missing((5, 6, 7)) == ((9,),)
    assert rules.missing((9, 5, 7, 6)) == ((5, 6), (6, 7))
    assert rules.missing(()) == rules.required


def test_no_rules_are_empty() -> None:
    assert Rules().empty
    assert not any(
        r.empty for r in (Rules(prefix=(5,)), Rules(required=((5,),)), Rules(forbidden=((5,),)))
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"required": ((),)}, "empty"),
        ({"forbidden": ((),)}, "empty"),
        ({"prefix": (5, EOS)}, "reserved piece 3"),
        ({"required": ((BOS, 5),)}, "reserved piece 2"),
        ({"forbidden": ((PAD,),)}, "reserved piece 0"),
        ({"required": ((5, 6, 7),), "forbidden": ((6, 7),)}, "holds a forbidden one"),
        ({"required": tuple((piece,) for piece in range(5, 14))}, "9 required phrases"),
    ],
)
def test_rules_without_sense_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Rules(**fields)  # type: ignore[arg-type]


def test_what_is_made_of_phrases_is_made_once_for_all_lines() -> None:
    rules = Rules(required=((5, 6), (6, 7), (9,)))
    _automaton.cache_clear()
    for _ in range(3):
        Required.of([rules] * 20, torch.tensor([9] * 20), eager=False)
    assert _automaton.cache_info().misses == 1
