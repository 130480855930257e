"""A well-known corpus has the oddities that are known of it; skips where it is not at hand."""

import os
from pathlib import Path

import pytest

from kakehashi.audit import Audit, Text, audit, shifts
from kakehashi.audit.files import read_text
from kakehashi.audit.shifts import segments

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("KAKEHASHI_SHARED", ROOT.parent / "shared")) / "data" / "multi30k"


@pytest.fixture(scope="module")
def found() -> Audit:
    if not FOLDER.is_dir():
        pytest.skip(f"needs Multi30k in {FOLDER}, which is not there")
    splits = {
        name: read_text(
            name, [FOLDER / f"{file}.de.xz", FOLDER / f"{file}.en.xz"], *[(None, None)] * 2
        )
        for name, file in (("train", "train"), ("valid", "val"))
    }
    return audit(splits, identify=False)


def test_many_missing_lines_are_found_in_a_long_text(
    found: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shifts, "_SHORT", 400)
    valid = found.splits[1].text
    target = [*valid.target[:400], *valid.target[412:]]
    first, second = segments(Text(valid.source[: len(target)], target, valid.lines))
    assert (first.shift, second.shift) == (0, -12)
    assert 397 <= second.start <= 415


def test_its_oddities_are_found(found: Audit) -> None:
    train = {(f.code, f.side): f for f in found.splits[0].findings}

    def told(code: str, side: str) -> tuple[int, tuple[int, ...]]:
        return train[code, side].count, train[code, side].lines

    assert (found.splits[0].text.source_language, len(found.splits[0].text)) == ("de", 29_000)
    assert told("sentence.no_words", "source") == (2, (16510, 16664))
    assert told("characters.control", "source") == (1, (7366,))
    assert "U+0009 × 1" in train["characters.control", "source"].title
    count, lines = told("characters.nbsp", "source")
    assert (count, lines[:3]) == (44, (5169, 5315, 5932))
    assert told("spaces.trailing", "source")[0] == 40
    count, lines = told("markup.entities", "target")
    assert (count, lines[:2]) == (16, (561, 3158))
    assert told("duplicates.exact", "both") == (3, (20149, 14215, 16867))
    examples = {(e.line, e.detail) for e in train["duplicates.exact", "both"].examples}
    assert examples == {
        (7929, "again in line 14215"),
        (9737, "again in line 16867"),
        (4385, "again in line 20149"),
    }


def test_a_validation_sentence_that_stands_in_training_is_found(found: Audit) -> None:
    shared = {f.code: f for f in found.overlaps}["overlap.train.valid.target"]
    assert 687 in shared.lines
    assert "train line 4750" in {e.detail for e in shared.examples if e.line == 687}


def test_it_is_aligned(found: Audit) -> None:
    for split in found.splits:
        assert [f for f in split.findings if f.code.startswith("alignment")] == []


@pytest.mark.parametrize(("at", "missing", "heals"), [(700, "target", None), (120, "source", 560)])
def test_a_shift_in_it_is_located(found: Audit, at: int, missing: str, heals: int | None) -> None:
    valid = found.splits[1].text
    sides = {"source": list(valid.source), "target": list(valid.target)}
    lost = sides[missing].pop(at)
    if heals is not None:
        sides[missing].insert(heals, lost)
    shift = -1 if missing == "target" else 1
    found_segments = segments(Text(sides["source"], sides["target"], range(1, 1015)))
    assert [s.shift for s in found_segments] == ([0, shift] if heals is None else [0, shift, 0])
    assert abs(found_segments[1].start - at) <= 3
    assert heals is None or abs(found_segments[1].end - heals) <= 3
