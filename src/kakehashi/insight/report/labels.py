"""How numbers are written."""

import math
from collections.abc import Mapping
from typing import Any


def length_label(group: Mapping[str, Any]) -> str:
    """Of a group of lengths, such as 6 to 10."""
    return _range(group["shortest"], group["longest"])


def frequency_label(group: Mapping[str, Any]) -> str:
    """Of a group of frequencies, such as never, 6 to 20 times."""
    if group["most"] == 0:
        return "never"
    return f"{_range(group['fewest'], group['most'])} times"


def _range(first: int, last: int | None) -> str:
    return f"{first:,} or more" if last is None else f"{first:,} to {last:,}"


def figure(value: float | None, digits: int = 2) -> str:
    """With a comma for thousands; what is no number is said to be none."""
    if value is None:
        return "–"
    return f"{value:,.{digits}f}" if math.isfinite(value) else "no number"


def percent(part: float, whole: float) -> str:
    """Such as 12.5 %."""
    return f"{100 * part / whole:.1f} %" if whole else "–"


def clock(seconds: float) -> str:
    """Such as 7 s, 3 min 20 s, 2 h 05 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
