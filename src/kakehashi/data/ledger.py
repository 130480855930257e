"""The ledger: every pair that was left out, changed or remarked on, its line and the reason."""

import json
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, Self, get_args

from kakehashi.data.reading import write_chunks

Side = Literal["source", "target", "both"]
Action = Literal["left out", "changed", "kept"]
ACTIONS: tuple[Action, ...] = get_args(Action)
_SHOWN = 3
"""Places named in a total."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """What happened to one pair."""

    split: str
    file: str
    """The file, two files or data set that the line is counted in."""
    line: int
    side: Side
    """Where the reason lies."""
    reason: str
    action: Action


@dataclass
class LedgerTotal:
    """How many pairs of a split met the same fate for the same reason."""

    split: str
    reason: str
    action: Action
    pairs: int = 0
    first: list[tuple[str, int]] = field(default_factory=list)
    """File and line of the first of them."""

    def __str__(self) -> str:
        one_file = len({file for file, _ in self.first}) == 1
        lines = [f"{line:,}" if one_file else f"{file} {line:,}" for file, line in self.first]
        if self.pairs > len(lines):
            lines.append("...")
        s = "" if self.pairs == 1 else "s"
        return (
            f"{self.split}: {self.reason}, {self.action}: {self.pairs:,} pair{s} "
            f"(line{s} {', '.join(lines)})"
        )


class Ledger:
    """Entries in the order in which they were made; some bytes each, so millions fit."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str, Side, str, Action], int] = {}
        self._kind = array("l")
        self._line = array("q")
        self._totals: dict[tuple[str, str, Action], LedgerTotal] = {}

    def add(
        self,
        split: str,
        file: str,
        line: int,
        side: Side,
        reason: str,
        action: Action = "left out",
    ) -> None:
        """Enter one pair. Reasons are few: what differs from pair to pair is the line."""
        kind = (split, file, side, reason, action)
        self._kind.append(self._kinds.setdefault(kind, len(self._kinds)))
        self._line.append(line)
        total = self._totals.get((split, reason, action))
        if total is None:
            total = self._totals[split, reason, action] = LedgerTotal(split, reason, action)
        total.pairs += 1
        if len(total.first) < _SHOWN:
            total.first.append((file, line))

    def __len__(self) -> int:
        return len(self._line)

    def __iter__(self) -> Iterator[LedgerEntry]:
        kinds = list(self._kinds)
        for number, line in zip(self._kind, self._line, strict=True):
            split, file, side, reason, action = kinds[number]
            yield LedgerEntry(split, file, line, side, reason, action)

    def include(self, totals: Iterable[LedgerTotal]) -> None:
        """Count entries that stand elsewhere."""
        for other in totals:
            kind = other.split, other.reason, other.action
            total = self._totals.setdefault(kind, LedgerTotal(*kind))
            total.pairs += other.pairs
            total.first += other.first[: _SHOWN - len(total.first)]

    def totals(self) -> list[LedgerTotal]:
        """One for each split, reason and action, what is left out first."""
        return sorted(self._totals.values(), key=lambda total: ACTIONS.index(total.action))

    def left_out(self, split: str) -> int:
        """Pairs of a split that were left out."""
        totals = self._totals.values()
        return sum(t.pairs for t in totals if (t.split, t.action) == (split, "left out"))

    def write(self, path: str | Path) -> None:
        """Write the entries as JSON lines, whole or not at all."""
        write_chunks(path, self.lines())

    def lines(self) -> Iterator[bytes]:
        """The entries as they stand in a file."""
        for entry in self:
            line = json.dumps(asdict(entry), ensure_ascii=False) + "\n"
            yield line.encode("utf-8", "surrogateescape")

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """What `write` wrote. Raises OSError, ValueError or TypeError when it is damaged."""
        ledger = cls()
        with Path(path).open(encoding="utf-8", errors="surrogateescape") as stream:
            for line in stream:
                ledger.add(**json.loads(line))
        return ledger
