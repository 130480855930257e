"""The page and the record: complete, escaped, self-contained."""

import io
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.audit import Audit, Text, audit
from kakehashi.audit.page import page
from kakehashi.audit.record import as_json
from kakehashi.audit.terminal import print_audit
from kakehashi.data.tokenizer import Tokenizer

VOID = {"meta", "rect", "line", "br"}


class Checker(HTMLParser):
    """Collects tags and text, and fails where tags do not match."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.said: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said.append(data)


def parsed(content: bytes) -> Checker:
    checker = Checker()
    checker.feed(content.decode("utf-8"))
    assert checker.open == []
    return checker


@pytest.fixture(scope="module")
def found(small: Text) -> Audit:
    source, target = list(small.source), list(small.target)
    source[4] = "<script>alert('x')</script> & \"q\" \x1b[31m\u202e \ud800"
    target[9] = ""
    train = Text(source, target, small.lines, "<b>.de, y.en", "de", "en")
    test = Text(source[:20], target[:20], range(1, 21), "test.de", "de", "en")
    tokenizer = Tokenizer.train([*small.source, *small.target], vocab_size=401)
    return audit({"train": train, "test": test}, tokenizer=tokenizer, identify=False)


def test_the_page_is_whole_and_loads_nothing(found: Audit) -> None:
    content = page(found)
    checker = parsed(content)
    assert "script" not in checker.tags
    assert not {"link", "img", "iframe", "object"} & set(checker.tags)
    assert not [value for name, value in checker.attributes if name in ("src", "onload")]
    targets = [value for name, value in checker.attributes if name == "href"]
    assert all(value is not None and value.startswith("#") for value in targets)
    assert not re.search(rb"https?://|url\(|@import", content)
    said = "".join(checker.said)
    assert "<script>alert('x')</script> & \"q\" [U+001B][31m[U+202E] [U+D800]" in said
    assert "<b>.de, y.en" in said
    for finding in found.findings:
        assert finding.code in said
    assert checker.tags.count("svg") == sum(len(s.lengths) + len(s.pieces) for s in found.splits)
    assert b"prefers-color-scheme: dark" in content


@given(st.text(st.characters(exclude_categories=())), st.text("<>&\"'/ab\x00\xa0"))
def test_whatever_the_text_the_page_and_the_record_are_well_formed(source: str, name: str) -> None:
    made = audit({name or "x": Text([source] * 3, [name] * 3, range(1, 4), name)}, identify=False)
    assert "script" not in parsed(page(made)).tags
    assert json.loads(as_json(made))["splits"][0]["source_lines"] == 3


def test_the_record_has_the_same_keys_whatever_was_found(found: Audit, small: Text) -> None:
    record = json.loads(as_json(found))
    clean = json.loads(as_json(audit({"train": small}, identify=False)))
    assert record.keys() == clean.keys()
    assert (clean["clean"], record["clean"]) == (True, False)
    assert record["splits"][0].keys() == clean["splits"][0].keys()
    assert sum(record["counts"].values()) == len(found.findings)
    split = record["splits"][0]
    by_code = {(f["code"], f["side"]): f for f in split["findings"]}
    blank = by_code["blank.target", "target"]
    assert (blank["count"], blank["lines"], blank["severity"]) == (1, [10], "warning")
    assert blank["share"] == pytest.approx(1 / 132)
    assert blank["examples"][0].keys() == {"line", "source", "target", "detail"}
    assert {d["what"] for d in split["lengths"]} >= {"source, characters", "target, words"}
    assert record["overlaps"][0]["code"] == "overlap.train.test.pairs"
    # The half of a surrogate pair comes back as it was.
    surrogate = by_code["characters.surrogate", "source"]
    assert "\ud800" in surrogate["examples"][0]["source"]


def test_the_report_has_the_worst_first_and_cannot_steer_a_terminal(found: Audit) -> None:
    stream = io.StringIO()
    print_audit(found, stream)
    said = stream.getvalue()
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert "train: 132 pairs, de to en, <b>.de, y.en" in said
    severities = [
        line.split()[0] for line in said.split("\n") if re.match("(error|warn|note) *", line)
    ]
    order = ["error", "warning", "note"]
    assert severities == sorted(severities, key=order.index)
    assert len(severities) == len(found.findings)


def test_a_clean_corpus_has_nothing_to_remark(small: Text) -> None:
    stream = io.StringIO()
    print_audit(audit({"train": small}, identify=False), stream)
    assert stream.getvalue().endswith("\nnothing to remark\n")


def test_the_audit_of_two_splits_says_which(found: Audit) -> None:
    made: Any = found
    assert [split.name for split in made.splits] == ["train", "test"]
    codes = [finding.code for finding in made.overlaps]
    assert codes == [f"overlap.train.test.{what}" for what in ("pairs", "source", "target")]
