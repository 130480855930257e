"""How far reading and tokenising have come: on a terminal a live line, else a note at times."""

import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Self, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from kakehashi.data.notes import note

LIVE_SECONDS = 0.5
QUIET_SECONDS = 10.0
SHORT_SECONDS = 1.0
"""Work that took less is not worth a line."""
_LOOK_EVERY = 1000

T = TypeVar("T")


class Meter:
    """Counts items, and how much of the work they were; writes count, rate and time left to stderr.

    Lines are counted while a file is read, but how many there are is not known: the work is the
    file's bytes then. `did` is told of work, `count` of items.
    """

    def __init__(self, what: str, unit: str, work: int) -> None:
        self.what, self.unit, self.work = what, unit, work
        self.items = self.done = 0
        self._next_look = _LOOK_EVERY
        self._started = self._shown = time.monotonic()
        console = Console(stderr=True)
        self._live = console.is_terminal
        self._bar = Progress(
            TextColumn(what),
            BarColumn(bar_width=24),
            TextColumn("{task.description}"),
            console=console,
            transient=True,
            disable=not self._live,
        )
        self._task = self._bar.add_task("", total=max(work, 1))

    def did(self, work: int) -> None:
        """Some of the work is done."""
        self.done += work

    def count(self, items: int = 1) -> None:
        """So many more items."""
        self.items += items
        if self.items >= self._next_look:
            self._next_look = self.items + _LOOK_EVERY
            now = time.monotonic()
            if now - self._shown >= (LIVE_SECONDS if self._live else QUIET_SECONDS):
                self._shown = now
                self._show()

    def over(self, items: Iterable[T], work: int = 0) -> Iterator[T]:
        """The items, each counted, and as so much work, once it is dealt with."""
        for item in items:
            yield item
            self.done += work
            self.count()

    def _show(self) -> None:
        if self._live:
            self._bar.update(self._task, description=self.text(), completed=self.done)
        else:
            note(f"{self.what}: {self.text()}")

    def text(self) -> str:
        """Count, rate, and time left once that can be told."""
        elapsed = time.monotonic() - self._started
        said = f"{self.items:,} {self.unit}, {self._rate(elapsed)}"
        if 0 < self.done < self.work:
            said += f", {(self.work - self.done) * elapsed / self.done:,.0f} s left"
        return said

    def _rate(self, elapsed: float) -> str:
        return f"{self.items / max(elapsed, 1e-9):,.0f} {self.unit}/s"

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()
        elapsed = time.monotonic() - self._started
        if kind is None and elapsed >= SHORT_SECONDS:
            took = f"{self.items:,} {self.unit} in {elapsed:,.1f} s"
            note(f"{self.what}: {took}, {self._rate(elapsed)}")
