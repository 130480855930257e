"""What a tokenizer makes of a corpus: pieces, and characters it does not know."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kakehashi.audit.findings import Finding, Hits, Severity, Side, Text
from kakehashi.audit.lengths import Counts, Distribution
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.data.tokenizer_config import BYTE_PIECE
from kakehashi.symbols import UNK

_AT_A_TIME = 10_000
_MANY = 0.001
"""Share of characters that the tokenizer does not know from on which it is the wrong one."""


@dataclass(frozen=True)
class Pieces:
    """One side in pieces."""

    side: Side
    lengths: Distribution
    pieces: int
    characters: int
    unknown: int
    """Characters without a piece of their own: spelled in bytes, or lost as <unk>."""
    most_unknown: tuple[tuple[str, int], ...]


def in_pieces(text: Text, tokenizer: Tokenizer) -> tuple[list[Pieces], list[Finding]]:
    """The statistics of both sides, and a finding for each with unknown characters."""
    spelled = _spelled(tokenizer)
    statistics, findings = [], []
    for side, lines, _ in text.sides():
        if not len(lines):
            continue
        lengths, hits, unknown = _read(lines, tokenizer, spelled)
        total = sum(map(len, lines))
        statistics.append(
            Pieces(
                side,
                Distribution.of(f"{side}, pieces", lengths),
                int(lengths.sum()),
                total,
                hits.occurrences,
                tuple(unknown.most_common(10)),
            )
        )
        if hits.count:
            findings.append(_finding(text, side, hits, unknown, total))
    return statistics, findings


def _spelled(tokenizer: Tokenizer) -> frozenset[int]:
    """The numbers of <unk> and of the 256 bytes."""
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    return frozenset([UNK, *(i for i, piece in enumerate(pieces) if BYTE_PIECE.fullmatch(piece))])


def _read(
    lines: Sequence[str], tokenizer: Tokenizer, spelled: frozenset[int]
) -> tuple[Counts, Hits, Counter[str]]:
    lengths = np.zeros(len(lines), np.int64)
    hits = Hits()
    unknown: Counter[str] = Counter()
    known: dict[str, bool] = {}
    for start in range(0, len(lines), _AT_A_TIME):
        part = list(lines[start : start + _AT_A_TIME])
        for index, (line, ids) in enumerate(
            zip(part, tokenizer.encode_batch(part), strict=True), start
        ):
            lengths[index] = len(ids)
            if spelled.isdisjoint(ids):
                continue
            if here := _unknown(line, tokenizer, spelled, known):
                unknown.update(here)
                hits.add(index, " ".join(dict.fromkeys(here)), len(here))
    return lengths, hits, unknown


def _unknown(
    line: str, tokenizer: Tokenizer, spelled: frozenset[int], known: dict[str, bool]
) -> list[str]:
    """The characters of the line that have no piece of their own; each is looked up once."""
    for character in set(line) - known.keys():
        known[character] = spelled.isdisjoint(tokenizer.encode(character))
    return [character for character in line if not known[character]]


def _finding(text: Text, side: Side, hits: Hits, unknown: Counter[str], total: int) -> Finding:
    share = hits.occurrences / total
    shown = " ".join(character for character, _ in unknown.most_common(10))
    title = f"lines with characters that the tokenizer does not know ({share:.4%} of all): {shown}"
    advice = "they are spelled in bytes, or lost where it has none: slower, and worse translated"
    severity: Severity = "warning" if share > _MANY else "note"
    return hits.finding(text, "tokenizer.unknown", severity, title, side, advice)
