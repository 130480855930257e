"""How far a long command has come, on stderr, when somebody is looking."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text


class Report:
    """What a command says while it works."""

    def __init__(self, bar: Progress, total: int | None) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=total)

    def advance(self, number: int = 1) -> None:
        """So many more are done."""
        self._bar.advance(self._task, number)

    def note(self, text: str) -> None:
        """Say something that stays, above the line that moves."""
        self._bar.console.print(
            f"note: {text}", markup=False, highlight=False, emoji=False, soft_wrap=True
        )


class _Rate(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        done = f"{task.completed:,.0f}"
        if task.total is not None:
            done += f"/{task.total:,.0f}"
        speed = task.finished_speed or task.speed
        return Text(f"{done} {self._unit}" + (f" · {speed:,.1f}/s" if speed else ""))


@contextmanager
def progress(what: str, unit: str, total: int | None, *, show: bool = True) -> Iterator[Report]:
    """A line with count, rate and time left on a terminal; elsewhere only the notes appear.

    Args:
        what: the work, such as translating.
        unit: what is counted, in the plural.
        total: how many there will be, where that is known.
        show: False keeps the line away, where results themselves go to the terminal.
    """
    console = Console(stderr=True)
    bar = Progress(
        TextColumn(what),
        BarColumn(bar_width=24),
        _Rate(unit),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not (show and console.is_terminal),
    )
    with bar:
        yield Report(bar, total)
