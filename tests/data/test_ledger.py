import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.data.ledger import ACTIONS, Ledger, LedgerEntry

ENTRIES = st.lists(
    st.builds(
        LedgerEntry,
        split=st.sampled_from(["train", "valid"]),
        file=st.sampled_from(["a.tsv", "b.tsv"]),
        line=st.integers(1, 2**40),
        side=st.sampled_from(["source", "target", "both"]),
        reason=st.sampled_from(["blank side", "source equals target"]),
        action=st.sampled_from(ACTIONS),
    ),
    max_size=30,
)


@given(ENTRIES)
def test_what_is_entered_is_there_and_counted(
    tmp_path_factory: pytest.TempPathFactory, entries: list[LedgerEntry]
) -> None:
    ledger = Ledger()
    for e in entries:
        ledger.add(e.split, e.file, e.line, e.side, e.reason, e.action)
    assert list(ledger) == entries
    assert len(ledger) == len(entries)
    for total in ledger.totals():
        same = [
            (e.file, e.line)
            for e in entries
            if (e.split, e.reason, e.action) == (total.split, total.reason, total.action)
        ]
        assert total.pairs == len(same)
        assert total.first == same[:3]
    assert sum(total.pairs for total in ledger.totals()) == len(entries)
    for split in ("train", "valid", "test"):
        dropped = [e for e in entries if (e.split, e.action) == (split, "left out")]
        assert ledger.left_out(split) == len(dropped)
    path = tmp_path_factory.mktemp("ledger") / "ledger.jsonl"
    ledger.write(path)
    rows = [json.loads(row) for row in path.read_text(encoding="utf-8").splitlines()]
    assert [LedgerEntry(**row) for row in rows] == entries


def test_totals_are_told_with_their_first_lines() -> None:
    ledger = Ledger()
    ledger.add("train", "a.de, a.en", 7, "target", "sentence also in test", "kept")
    for line in (3, 5, 11, 1200):
        ledger.add("train", "a.de, a.en", line, "source", "blank side")
    ledger.add("valid", "part-1.tsv", 8, "both", "strip", "changed")
    ledger.add("valid", "part-2.tsv", 1234, "both", "strip", "changed")
    assert [str(total) for total in ledger.totals()] == [
        "train: blank side, left out: 4 pairs (lines 3, 5, 11, ...)",
        "valid: strip, changed: 2 pairs (lines part-1.tsv 8, part-2.tsv 1,234)",
        "train: sentence also in test, kept: 1 pair (line 7)",
    ]


def test_a_file_with_an_odd_name_is_written(tmp_path: Path) -> None:
    ledger = Ledger()
    name = b"caf\xe9 \xe7\x8a\xac.de".decode("utf-8", "surrogateescape")
    ledger.add("train", name, 1, "both", "blank side")
    ledger.write(tmp_path / "ledger.jsonl")
    assert b"caf\xe9 \xe7\x8a\xac.de" in (tmp_path / "ledger.jsonl").read_bytes()
