"""An audit on the terminal: what matters first, with lines to look at."""

from collections.abc import Iterator
from typing import IO

from rich.console import Console
from rich.table import Table
from rich.text import Text as Line

from kakehashi.audit.findings import SEVERITIES, Example, Finding, Severity
from kakehashi.audit.lengths import Distribution
from kakehashi.audit.run import Audit, SplitAudit
from kakehashi.audit.subwords import Pieces
from kakehashi.audit.visible import visible

_STYLES: dict[Severity, str] = {"error": "bold red", "warning": "yellow", "note": "cyan"}
_EXAMPLES = 3
_SHOWN = 110
"""Characters of a sentence that are shown."""
_COLUMNS = ("mean", "min", "5 %", "median", "95 %", "99 %", "max")
_QUANTILES = (0.0, 0.05, 0.5, 0.95, 0.99, 1.0)


def print_audit(found: Audit, stream: IO[str]) -> None:
    """Write the report to a stream: in colour on a terminal, plain text elsewhere."""
    # Elsewhere than on a terminal nothing must be cut to its width.
    wide = None if stream.isatty() else 200
    console = Console(file=stream, width=wide, highlight=False, markup=False, emoji=False)
    for split in found.splits:
        _heading(console, split)
    console.print(summary(found), style="bold")
    for severity in SEVERITIES:
        for name, finding in _of_severity(found, severity):
            _finding(console, name if len(found.splits) > 1 else "", finding)
    for reason in found.skipped:
        console.print(f"\nnot checked: {reason}", soft_wrap=True)


def summary(found: Audit) -> str:
    """How many findings there are of each severity."""
    counts = [(s, sum(f.severity == s for f in found.findings)) for s in SEVERITIES]
    told = ", ".join(f"{n} {name}{'' if n == 1 else 's'}" for name, n in counts if n)
    return told or "nothing to remark"


def _of_severity(found: Audit, severity: Severity) -> Iterator[tuple[str, Finding]]:
    for split in found.splits:
        yield from ((split.name, f) for f in split.findings if f.severity == severity)
    yield from (("", f) for f in found.overlaps if f.severity == severity)


def _heading(console: Console, split: SplitAudit) -> None:
    text = split.text
    languages = f"{text.source_language or '?'} to {text.target_language or '?'}"
    console.print(
        f"{split.name}: {len(text):,} pairs, {languages}, {text.name}", style="bold", soft_wrap=True
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("")
    for column in _COLUMNS:
        table.add_column(column, justify="right")
    for lengths in (*split.lengths, *(pieces.lengths for pieces in split.pieces)):
        table.add_row(f"  {lengths.what}", *_row(lengths))
    console.print(table)
    for pieces in split.pieces:
        console.print(f"  {spelled(pieces)}", soft_wrap=True)
    console.print()


def spelled(pieces: Pieces) -> str:
    """How a tokenizer fares on one side, in a sentence."""
    return (
        f"{pieces.side}: {pieces.pieces:,} pieces for {pieces.characters:,} characters "
        f"({pieces.characters / max(1, pieces.pieces):.2f} a piece), {pieces.unknown:,} characters "
        f"unknown ({pieces.unknown / max(1, pieces.characters):.4%})"
    )


def _row(lengths: Distribution) -> Iterator[str]:
    quantiles = dict(lengths.quantiles)
    for value in (lengths.mean, *(quantiles[q] for q in _QUANTILES)):
        yield number(value)


def number(value: float) -> str:
    """Whole where it is whole, otherwise with as many places as tell something."""
    if value == round(value):
        return f"{value:,.0f}"
    return f"{value:,.1f}" if value >= 10 else f"{value:.2f}"


def _finding(console: Console, name: str, finding: Finding) -> None:
    head = Line()
    head.append(f"\n{finding.severity:<8}", _STYLES[finding.severity])
    where = [part for part in (name, finding.side if finding.side != "both" else "") if part]
    head.append(f"{', '.join(where)}: " if where else "")
    head.append(visible(finding.title, 400), "bold")
    console.print(head, soft_wrap=True)
    if finding.of:
        console.print(f"        {counted(finding)}", soft_wrap=True)
    if finding.advice:
        console.print(f"        {finding.advice}", style="dim", soft_wrap=True)
    for example in finding.examples[:_EXAMPLES]:
        _example(console, finding, example)


def counted(finding: Finding) -> str:
    """The count with its share, and the first lines."""
    share = f" of {finding.of:,} ({finding.share:.2%})"
    lines = ", ".join(map(str, finding.lines[:8]))
    more = ", ..." if finding.count > 8 and len(finding.lines) >= 8 else ""
    return f"{finding.count:,}{share}" + (f": line {lines}{more}" if lines else "")


def _example(console: Console, finding: Finding, example: Example) -> None:
    place = f"{example.line:>9}  "
    shown = []
    blank = finding.code.startswith("blank")  # a blank line alone shows nothing
    if blank or finding.side != "target":
        shown.append(example.source)
    if blank or finding.side != "source":
        shown.append(example.target)
    for sentence in shown:
        console.print(f"{place}{visible(sentence, _SHOWN)}", soft_wrap=True)
        place = " " * 11
    if example.detail:
        console.print(f"{' ' * 11}({visible(example.detail, _SHOWN)})", style="dim", soft_wrap=True)
