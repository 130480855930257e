"""An audit as plain data, for programs: the same keys whatever was found."""

import json
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from kakehashi.audit.findings import SEVERITIES, Finding
from kakehashi.audit.lengths import Distribution
from kakehashi.audit.run import Audit, SplitAudit
from kakehashi.audit.subwords import Pieces


def as_dict(found: Audit) -> dict[str, Any]:
    """The whole audit; `severity`, `code` and the other keys are stable."""
    return {
        "kakehashi": version("kakehashi"),
        "clean": found.clean,
        "counts": {
            severity: sum(finding.severity == severity for finding in found.findings)
            for severity in SEVERITIES
        },
        "skipped": found.skipped,
        "splits": [_split(split) for split in found.splits],
        "overlaps": [_finding(finding) for finding in found.overlaps],
    }


def as_json(found: Audit) -> bytes:
    """`as_dict` in UTF-8; half a surrogate pair, which UTF-8 can't write, as its escape."""
    text = json.dumps(as_dict(found), ensure_ascii=False, indent=2) + "\n"
    return text.encode("utf-8", "backslashreplace")


def _split(split: SplitAudit) -> dict[str, Any]:
    text = split.text
    return {
        "name": split.name,
        "files": text.name,
        "source_language": text.source_language or None,
        "target_language": text.target_language or None,
        "source_lines": len(text.source),
        "target_lines": len(text.target),
        "lengths": [_distribution(lengths) for lengths in split.lengths],
        "tokenizer": [_pieces(pieces) for pieces in split.pieces],
        "findings": [_finding(finding) for finding in split.findings],
    }


def _distribution(lengths: Distribution) -> dict[str, Any]:
    return {
        "what": lengths.what,
        "mean": lengths.mean,
        "quantiles": {f"{q:g}": value for q, value in lengths.quantiles},
        "histogram": {"edges": lengths.edges, "counts": lengths.counts},
    }


def _pieces(pieces: Pieces) -> dict[str, Any]:
    return {
        "side": pieces.side,
        "pieces": pieces.pieces,
        "characters": pieces.characters,
        "unknown_characters": pieces.unknown,
        "most_unknown": dict(pieces.most_unknown),
        "lengths": _distribution(pieces.lengths),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return asdict(finding) | {"share": finding.share}
