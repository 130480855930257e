"""The page of a report: text stays text, charts are where the values are, parts may be missing."""

import copy
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from kakehashi.evaluation.analysis import analyse
from kakehashi.insight.report.charts import HEIGHT, POINTS, WIDTH, Line, chart
from kakehashi.insight.report.page import page
from kakehashi.insight.report.recorded import Recorded

TEXTS = [
    "Das kostet $5_$ & <b>mehr</b>.",
    "</script><script>alert(1)</script><!--",
    "&amp; &lt; \\ \" ' ` ${x}",
    "猫は本を読みます。",
    "הכלב ישן, והחתול ער.",
    "👩‍🚀🐈 é é",
    "eins\u2028zwei\tdrei\u202evier",
    "\ud800",
    "",
    "lang " * 2000,
]


@pytest.fixture(scope="module")
def summary() -> dict[str, Any]:
    score = {
        "name": "BLEU",
        "value": 12.3456,
        "signature": "nrefs:1|tok:13a",
        "low": 11.0,
        "high": 14,
    }
    ledger = {"split": "train", "reason": "blank <side>", "action": "left out", "pairs": 1203}
    return {
        "name": "a <run>",
        "finished": "2026-11-30T12:00:00+00:00",
        "command": "kakehashi train 'name=a <run>'",
        "reproduce": "kakehashi train 'name=a <run>' trainer.max_updates=7",
        "seed": 1,
        "source_language": "de",
        "target_language": "en",
        "corpus": {
            "name": "a & b",
            "licence": "CC0",
            "attribution": "",
            "provenance": {"/home/me/text.de": "sha256 12ab"},
            "sha256": {"train": "34cd"},
            "stream": None,
            "training_pairs": 7003,
            "validation_pairs": 101,
            "test_pairs": 10,
            "pairs_read": {"train": 8317},
            "ledger": [
                ledger | {"first": [["/home/me/text.de", 1009], ["/home/me/text.de", 1013]]}
            ],
            "account": "Of 8,317 pairs read: 7,003 to train on.",
            "ledger_files": "ledger.jsonl",
        },
        "vocab_size": 401,
        "model": {"name": "rnn", "d_hidden": 17, "score": {"name": "additive"}},
        "parameters": 12007,
        "training": {
            "updates": 7,
            "tokens": 7919,
            "seconds": 61.0,
            "validation_seconds": 4.0,
            "saving_seconds": 0.25,
            "points": [
                {"update": 3, "seconds": 20.0, "nll": float("nan"), "bleu": 0.0},
                {"update": 7, "seconds": 3725.0, "nll": 2.5, "bleu": 9.0},
            ],
            "validated": {"nll": 2.5, "bleu": 9.0},
            "resumed": [3],
            "faults": {
                "skipped": 2,
                "in_a_row": 0,
                "overflows": 0,
                "largest_part": None,
                "full_precision_from": None,
            },
            "warnings": ["the <loss> rose"],
        },
        "test": {
            "scores": {"bleu": score, "notes": ["characters & words"]},
            "sentences_per_second": 3.0,
            "decoding": {"beam": 3, "length_penalty": 1.0},
            "apart": True,
        },
        "seconds": {"training": 61.0},
        "made": {"weights": "best <checkpoint>", "stream": "read as it came"},
        "samples": [{"source": "it's $5_$", "translation": "x", "reference": "y"}],
        "versions": {"kakehashi": "9.8.7"},
        "machine": {"platform": "Linux", "processor": "P", "cores": 2, "threads": 1, "gpus": []},
        "code": {"commit": "abc123", "changed": True},
    }


@pytest.fixture(scope="module")
def recorded(summary: dict[str, Any]) -> Recorded:
    found = analyse(TEXTS, TEXTS[::-1], TEXTS, TEXTS, ("de", "en")).as_dict()
    curves = {"train/nll": [(n, 1 / n) for n in range(1, 8)], "train/learning_rate": [(1, 1e-7)]}
    return Recorded(summary, found, None, curves, "name: a <run>\n", "- name=a <run>\n")


class Reader(HTMLParser):
    """Elements, headings, ids, and the text of every sentence."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.elements, self.ids, self.headings = list[str](), list[str](), list[int]()
        self.sentences, self.named, self.links = list[str](), list[str](), list[str]()
        self._inside = False
        self.feed(content.decode("utf-8"))

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        given = dict(attrs)
        self.elements.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if "id" in given:
            self.ids.append(given["id"])
        self.named += given.get("aria-labelledby", "").split()
        if given.get("href", "").startswith("#"):
            self.links.append(given["href"][1:])
        if given.get("class") == "sentence":
            assert given["dir"] == "auto"
            self._inside = True
            self.sentences.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "span"

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.sentences[-1] += data


def test_sentences_are_text_whatever_they_hold(recorded: Recorded) -> None:
    found = Reader(page(recorded))
    shown = set(found.sentences)
    for text in TEXTS[:7]:
        assert text in shown
    assert "script" not in found.elements and "b" not in found.elements
    (long,) = (text for text in shown if text.startswith("lang"))
    assert long.endswith("… (8,800 characters more)") and len(long) < 1300


def test_the_page_is_in_order(recorded: Recorded) -> None:
    content = page(recorded)
    found, text = Reader(content), content.decode("utf-8")
    assert len(found.ids) == len(set(found.ids))
    assert set(found.named) | set(found.links) <= set(found.ids)
    assert found.headings[0] == 1 and found.headings.count(1) == 1
    assert all(b <= a + 1 for a, b in zip(found.headings, found.headings[1:], strict=False))
    assert {"header", "nav", "main", "footer"} <= set(found.elements)
    assert found.elements.count("caption") == found.elements.count("table")
    for expected in (
        "12.35",
        "11.00 to 14.00",
        "12.3 <small>11.0 to 14.0</small>",
        "nrefs:1|tok:13a",
        "1,203",
        "1,009, 1,013",
        "2 </td>".replace(" ", ""),
        "the &lt;loss&gt; rose",
        "read as it came",
        "no number",
        "1 h 02 min",
        "printf &#x27;%s\\n&#x27; &#x27;it&#x27;&quot;&#x27;&quot;&#x27;s $5_$&#x27; | "
        "kakehashi translate RUN",
        "abc123",
        "text.de",
    ):
        assert expected in text, expected
    assert "/home/me" not in text
    assert "http" not in text.replace("http-equiv", "")


def test_it_is_the_same_every_time(recorded: Recorded) -> None:
    assert page(recorded) == page(copy.deepcopy(recorded))


def test_without_a_test_split(summary: dict[str, Any]) -> None:
    alone = copy.deepcopy(summary)
    alone["test"]["scores"], alone["samples"], alone["code"] = None, [], None
    alone["corpus"] |= {"ledger": [], "provenance": {}, "sha256": {}}
    alone["training"] |= {"points": [], "warnings": [], "resumed": []}
    text = page(Recorded(alone, None, None)).decode("utf-8")
    assert "without a test split" in text
    assert 'id="lengths"' not in text
    assert "logger.csv was off" in text
    assert "No pair was left out" in text


def places(drawn: str) -> list[tuple[float, float]]:
    """The points of the first line of a chart."""
    (path,) = re.findall(r'class="line l0" d="M([^"]+)"/>(?!</svg> )', drawn)
    return [tuple(map(float, place.split())) for place in path.split("L")]


def test_a_chart_puts_values_where_they_belong() -> None:
    drawn = chart("rate", [Line("rate", [(0, 0.0), (50, 0.5), (100, 1.0)])], "c")
    (left, bottom), (middle, half), (right, top) = places(drawn)
    assert middle == pytest.approx((left + right) / 2, abs=0.1)
    assert half == pytest.approx((bottom + top) / 2, abs=0.1)
    assert 0 < left < right < WIDTH and 0 < top < bottom < HEIGHT
    assert "rate: 0.00 at update 0, 1.00 at update 100; lowest 0.00 at 0" in drawn


@pytest.mark.parametrize("value", [0.0, -3.0, 1e-9, 5e12])
def test_a_chart_of_one_value(value: float) -> None:
    drawn = chart("one", [Line("one", [(2, value)])], "c")
    ((x, y),) = places(drawn)
    assert 0 < x < WIDTH and 0 < y < HEIGHT


def test_a_long_line_is_drawn_as_means() -> None:
    points = [(n, float(n % 7)) for n in range(1, 10_001)]
    drawn = places(chart("long", [Line("long", points)], "c"))
    assert 100 < len(drawn) <= POINTS


def test_no_chart_without_points() -> None:
    assert chart("none", [Line("none", [])], "c") == ""
