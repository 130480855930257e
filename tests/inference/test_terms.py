"""Terms are found as words, and read from a file that names its faults."""

from itertools import pairwise
from pathlib import Path

import pytest

from kakehashi.errors import ConfigError, DataError
from kakehashi.inference.terms import Terms


@pytest.mark.parametrize(
    ("terms", "text", "expected"),
    [
        (["Bank"], "Die Bank, Bankhaus, Datenbank, bank, „Bank“", ["Bank", "Bank"]),
        (["laufen"], "Laufen und LAUFEN, verlaufen", ["laufen", "laufen"]),
        (["USB"], "usb USB", ["USB"]),
        (["bank", "Bank"], "Bank bank", ["Bank", "bank"]),
        # The longest counts, and the first of equals.
        (
            ["alte Brücke", "Brücke", "Brücke am Fluss"],
            "die alte Brücke am Fluss",
            ["Brücke am Fluss"],
        ),
        (["a b", "b c"], "a b c", ["a b"]),
        (["C++", "C"], "C++ und C.", ["C++", "C"]),
        # Scripts without spaces have no ends of words.
        (["技術", "AI"], "最新AI技術者 AIR", ["AI", "技術"]),
        (["東京"], "東京都に行く", ["東京"]),
        (["é"], "e\u0301 é éa", ["é"]),
    ],
)
def test_terms_of_a_text(terms: list[str], text: str, expected: list[str]) -> None:
    found = Terms({term: f"<{term}>" for term in terms}).found(text)
    assert [term.source for term in found] == expected
    assert all(term.target == f"<{term.source}>" for term in found)
    ends = [(term.start, term.end) for term in found]
    assert all(one[1] <= other[0] for one, other in pairwise(ends))
    assert all(text[s:e].lower() == t.source.lower() for (s, e), t in zip(ends, found, strict=True))


def test_terms_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("Bank\tbench\n\n alte Brücke \t old bridge\r\nBank\tbench\n", encoding="utf-8")
    assert Terms.read(path).terms == {"Bank": "bench", "alte Brücke": "old bridge"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("Bank\tbench\nBrücke\n", "terms.tsv, line 2: 'Brücke' is not a term, a tab and its"),
        ("Bank\t\n", "terms.tsv, line 1: "),
        ("\tbench\n", "terms.tsv, line 1: "),
        ("a\tb\tc\n", "terms.tsv, line 1: "),
        (
            "Bank\tbench\n\nBank\tbank\n",
            "line 3: 'Bank' is to be 'bank' here and 'bench' in line 1",
        ),
    ],
)
def test_faults_of_a_file(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        Terms.read(path)


def test_empty_terms_are_refused() -> None:
    with pytest.raises(ConfigError, match="empty"):
        Terms({"Bank": " "})
