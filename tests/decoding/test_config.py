"""The search's settings: refused when they make no sense, and length limits by hand."""

import pytest
import torch

from kakehashi.decoding.config import (
    DecodingConfig,
    decoding_config,
    decoding_settings,
    enough,
)
from kakehashi.decoding.limits import max_lengths
from kakehashi.errors import ConfigError


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("beam", 0),
        ("patience", 0.9),
        ("length_penalty", -0.1),
        ("length_penalty", float("nan")),
        ("max_ratio", -1.0),
        ("max_extra", 0),
        ("batch_size", 0),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(setting: str, value: float) -> None:
    with pytest.raises(ConfigError, match=setting):
        decoding_config(decoding_settings(DecodingConfig()) | {setting: value})


def test_settings_come_back_as_they_were_saved() -> None:
    config = DecodingConfig(beam=3, length_penalty=0.7, max_ratio=1.5, max_extra=7, batch_size=11)
    assert decoding_config(decoding_settings(config)) == config


def test_unknown_and_missing_settings_are_named() -> None:
    settings = decoding_settings(DecodingConfig())
    with pytest.raises(ConfigError, match="lenght"):
        decoding_config(settings | {"lenght": 2})
    del settings["beam"]
    with pytest.raises(ConfigError, match="beam"):
        decoding_config(settings)


def test_patience_counts_translations_and_a_beam_of_one_has_none() -> None:
    cases = {(5, 1.0): 5, (5, 2.0): 10, (3, 1.5): 5, (2, 1.2): 2, (1, 1.0): 1, (1, 9.0): 1}
    assert {case: enough(*case) for case in cases} == cases


def test_length_limits_depend_on_the_sentence_alone() -> None:
    allowed = torch.tensor([[True, True, True, False, False], [True] * 5, [True] + [False] * 4])
    config = DecodingConfig(max_ratio=1.5, max_extra=2)
    assert max_lengths(allowed, config).tolist() == [4 + 2, 7 + 2, 1 + 2]
    assert max_lengths(allowed[:1, :3], config).tolist() == [6]
