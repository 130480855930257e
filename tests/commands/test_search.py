"""What may be tried, against Hydra's own reading of the same words."""

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from kakehashi.commands.search import distribution, search_space
from kakehashi.errors import ConfigError


def parsed(*words: str):
    return OverridesParser.create().parse_overrides(list(words))


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("a=choice(rnn,transformer)", CategoricalDistribution(["rnn", "transformer"])),
        ("a=1,'b c',null", CategoricalDistribution(["1", "'b c'", "null"])),
        ("a=interval(1e-3,1e-2)", FloatDistribution(1e-3, 1e-2)),
        ("a=tag(log,interval(1e-3,1e-2))", FloatDistribution(1e-3, 1e-2, log=True)),
        ("a=int(interval(2,9))", IntDistribution(2, 9)),
        ("a=tag(log,int(interval(1,64)))", IntDistribution(1, 64, log=True)),
        ("a=range(2,9,3)", IntDistribution(2, 8, step=3)),
        ("a=range(9,2,-3)", IntDistribution(3, 9, step=3)),
        ("a=range(4,5)", CategoricalDistribution(["4"])),
    ],
)
def test_distributions(word, expected):
    (override,) = parsed(word)
    assert distribution(override) == expected


@pytest.mark.parametrize("word", ["a=range(1,12,4)", "a=range(0.1,0.5,0.1)", "a=range(0,1,0.25)"])
def test_a_range_holds_what_hydra_counts(word):
    (override,) = parsed(word)
    found = distribution(override)
    assert isinstance(found, IntDistribution | FloatDistribution)
    assert found.step is not None
    n = round((found.high - found.low) / found.step) + 1
    values = [found.low + k * found.step for k in range(n)]
    assert values == pytest.approx(list(override.sweep_iterator()))


@pytest.mark.parametrize("word", ["a=interval(2,1)", "a=tag(log,interval(0,1))", "a=range(3,3)"])
def test_what_holds_nothing_is_refused(word):
    (override,) = parsed(word)
    with pytest.raises(ConfigError, match="a="):
        distribution(override)


def test_only_what_varies_is_searched():
    space = search_space(parsed("seed=2", "model=rnn,transformer", "+x.y=interval(0,1)"))
    assert list(space) == ["model", "+x.y"]
    with pytest.raises(ConfigError, match="nothing to search"):
        search_space(parsed("seed=2"))
