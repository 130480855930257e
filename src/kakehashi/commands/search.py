"""What a sweep may try, from Hydra's words to Optuna's distributions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hydra.core.override_parser.types import IntervalSweep, Override, RangeSweep

from kakehashi.errors import ConfigError

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution


def distribution(override: Override) -> "BaseDistribution":
    """What an override of Hydra's grammar lets a setting be.

    ``choice(a,b)``, ``a,b`` and ``glob(*)`` are categories; ``interval(a,b)`` is any number from a
    to b, a whole one where ``int(...)`` says so; ``range(a,b,step)`` numbers at equal distances,
    b left out. ``tag(log,...)`` looks evenly at orders of magnitude.

    Raises:
        ConfigError: for an interval or a range that holds nothing, or cannot be logarithmic.
    """
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    sweep = override.value()
    log = "log" in getattr(sweep, "tags", ())
    try:
        if isinstance(sweep, IntervalSweep):
            low: Any = sweep.start  # a whole number after int(...)
            high: Any = sweep.end
            if isinstance(low, int) and isinstance(high, int):
                return IntDistribution(low, high, log=log)
            return FloatDistribution(float(low), float(high), log=log)
        values: list[Any] = list(override.sweep_iterator()) if override.is_range_sweep() else []
        if len(values) < 2:
            return CategoricalDistribution(list(override.sweep_string_iterator()))
        assert isinstance(sweep, RangeSweep)
        low, high, step = min(values), max(values), abs(sweep.step)
        if all(isinstance(value, int) for value in values):
            return IntDistribution(low, high, step=int(step), log=log)
        return FloatDistribution(low, high, step=step, log=log)
    except ValueError as error:
        raise ConfigError(f"{override.input_line}: {error}") from None


def search_space(overrides: Sequence[Override]) -> "dict[str, BaseDistribution]":
    """The settings that are to be searched, by their names.

    Raises:
        ConfigError: when there is none.
    """
    space = {o.get_key_element(): distribution(o) for o in overrides if o.is_sweep_override()}
    if not space:
        raise ConfigError(
            "there is nothing to search: give a setting several values, for example "
            "'model=choice(rnn,transformer)' or 'optimizer.learning_rate=interval(1e-3,1e-2)'"
        )
    return space
