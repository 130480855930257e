from pathlib import Path

import pytest

from kakehashi.data.ledger import Ledger
from kakehashi.data.ledgerfile import LedgerFile
from kakehashi.errors import DataError


def entries(*lines: int, reason: str = "blank side") -> Ledger:
    ledger = Ledger()
    for line in lines:
        ledger.add("train", "a\udcff.tsv", line, "source", reason)
    return ledger


HEAD = Ledger()
HEAD.add("valid", "v.tsv", 3, "target", "blank side", "kept")


def test_what_is_cut_off_can_be_entered_again(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    file = LedgerFile(path, HEAD)
    file.cut(0)
    assert path.read_bytes() == b"".join(HEAD.lines())
    file.append(entries(1, 2))
    size = file.size
    file.append(entries(5, reason="too long"))
    whole, totals = path.read_bytes(), file.totals()
    assert [entry.line for entry in Ledger.read(path)] == [3, 1, 2, 5]
    assert [(t.reason, t.pairs) for t in totals] == [("blank side", 2), ("too long", 1)]

    other = LedgerFile(path, HEAD)  # another process, which goes on from where it was saved
    other.cut(size)
    assert [entry.line for entry in Ledger.read(path)] == [3, 1, 2]
    other.append(entries(5, reason="too long"))
    assert path.read_bytes() == whole
    assert other.totals() == totals

    other.cut(0)
    assert path.read_bytes() == b"".join(HEAD.lines())
    assert other.totals() == []


def test_another_ledger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    file = LedgerFile(path, HEAD)
    with pytest.raises(DataError, match=r"cannot go on in .*ledger\.jsonl"):
        file.cut(7)
    file.cut(0)
    file.append(entries(1))
    with pytest.raises(DataError, match="not the ledger that the run had"):
        file.cut(file.size + 1)
    content = path.read_bytes()
    with pytest.raises(DataError, match="not the ledger that the run had"):
        LedgerFile(path, entries(8)).cut(1)
    assert path.read_bytes() == content


def test_every_process_has_a_file_of_its_own(tmp_path: Path) -> None:
    for rank in range(3):
        LedgerFile.of_process(tmp_path / "ledger.jsonl", HEAD, rank).cut(0)
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert sizes.pop("ledger.jsonl") > 0
    assert sizes == {"ledger-1.jsonl": 0, "ledger-2.jsonl": 0}
