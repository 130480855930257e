"""What an audit says: findings by severity, each with counts, lines and examples."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["error", "warning", "note"]
Side = Literal["source", "target", "both"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")

MAX_LINES = 20
"""Line numbers that a finding keeps, of however many it counts."""
MAX_EXAMPLES = 5


@dataclass(frozen=True)
class Example:
    """One pair as it stands in the corpus; `detail` says what is to be seen in it."""

    line: int
    source: str
    target: str
    detail: str = ""


@dataclass(frozen=True)
class Finding:
    """One thing that was found."""

    code: str
    """A stable name, such as `characters.nbsp`."""
    severity: Severity
    title: str
    """What was found, in a few words."""
    count: int
    """How many lines, pairs or sentences it concerns."""
    of: int
    """Out of how many; 0 where a share means nothing."""
    side: Side = "both"
    lines: tuple[int, ...] = ()
    """The first of them."""
    examples: tuple[Example, ...] = ()
    advice: str = ""
    """What it does to training, and what to do."""

    @property
    def share(self) -> float:
        """`count` of `of`, from 0 to 1."""
        return self.count / self.of if self.of else 0.0


@dataclass
class Text:
    """The two sides under audit: line k of one should translate line k of the other."""

    source: Sequence[str]
    target: Sequence[str]
    lines: Sequence[int]
    """Where each stands in its file (or the corpus's own numbers), for the longer side."""
    name: str = ""
    source_language: str = ""
    target_language: str = ""

    def __len__(self) -> int:
        return min(len(self.source), len(self.target))

    def example(self, index: int, detail: str = "") -> Example:
        """The pair at `index`; a side that has ended is empty."""
        source, target = (
            side[index] if index < len(side) else "" for side in (self.source, self.target)
        )
        return Example(self.lines[index], source, target, detail)

    def sides(self) -> tuple[tuple[Side, Sequence[str], str], ...]:
        """Both sides by name, with their languages."""
        return (
            ("source", self.source, self.source_language),
            ("target", self.target, self.target_language),
        )


@dataclass
class Hits:
    """Counts the lines that show something, and keeps the first of them."""

    count: int = 0
    occurrences: int = 0
    indices: list[int] = field(default_factory=list)
    details: list[str] = field(default_factory=list)

    def add(self, index: int, detail: str = "", occurrences: int = 1) -> None:
        """One more line, by its index."""
        self.count += 1
        self.occurrences += occurrences
        if len(self.indices) < MAX_LINES:
            self.indices.append(index)
            self.details.append(detail)

    def finding(
        self, text: Text, code: str, severity: Severity, title: str, side: Side, advice: str = ""
    ) -> Finding:
        """The finding that these lines make."""
        of = {"source": len(text.source), "target": len(text.target)}.get(side, len(text))
        return Finding(
            code,
            severity,
            title,
            self.count,
            of,
            side,
            tuple(text.lines[i] for i in self.indices),
            tuple(
                text.example(i, detail)
                for i, detail in list(zip(self.indices, self.details, strict=True))[:MAX_EXAMPLES]
            ),
            advice,
        )


def hits_of(indices: Iterable[int]) -> Hits:
    """The hits at these indices, without details."""
    hits = Hits()
    for index in indices:
        hits.add(index)
    return hits


def by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """Errors first, then warnings, then notes; each in the order of the checks."""
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
