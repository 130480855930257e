import csv
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.data.pairfiles import read_table
from kakehashi.errors import DataError

VERBATIM = [
    '"Erster',
    "null",
    "NA",
    "007",
    'sag "hallo"',
    "None",
    "'",
    '""',
    " nan ",
    "1e5",
    "TRUE",
]


def test_a_tsv_field_is_the_text_that_it_looks_like(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"{text}\t{text}x\n" for text in VERBATIM), encoding="utf-8")
    pairs = read_table(path, None, None)
    assert pairs.source == VERBATIM
    assert pairs.target == [f"{text}x" for text in VERBATIM]


# Everything that CSV has rules for, and what other programs take for a line's end.
FIELD = st.text(st.sampled_from("aé犬,\" \n;\u2028\x85\x0b\x0c\x00\t'"), max_size=12)


@given(
    st.lists(st.tuples(FIELD, FIELD, FIELD), min_size=1, max_size=8),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_what_python_writes_as_csv_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, ...]], end: str, quoting: int
) -> None:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator=end, quoting=quoting).writerows(rows)
    path = tmp_path_factory.mktemp("tables") / "a.csv.gz"
    path.write_bytes(gzip.compress(buffer.getvalue().encode()))
    pairs = read_table(path, "3", "1")
    assert (pairs.source, pairs.target) == ([row[2] for row in rows], [row[0] for row in rows])
    lines, line = [], 1
    for row in rows:
        lines.append(line)
        line += 1 + sum(field.count("\n") for field in row)
    assert list(pairs.lines) == lines


def test_csv_fields_are_verbatim_and_columns_have_names(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    doubled = [text.replace('"', '""') for text in VERBATIM]
    rows = "".join(f'x,"{text}","{text}!"\r\n' for text in doubled)
    path.write_bytes(b"\xef\xbb\xbf" + f"id,de,en\r\n{rows}".encode())
    pairs = read_table(path, "de", "en")
    assert pairs.source == VERBATIM
    assert pairs.target == [f"{text}!" for text in VERBATIM]
    assert list(pairs.lines) == list(range(2, 2 + len(VERBATIM)))
    with pytest.raises(DataError, match="no column is named 'fr'; there are id, de, en"):
        read_table(path, "fr", "en")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'a,b\n"c,d\ne,f\n', "line 2: not CSV .unexpected end of data"),
        (b'a,b\n"x\ny"z,d\n', "line 2: not CSV .*expected after"),
        (b"a,b\nc\rd,e\n", "line 2: not CSV .*new-line"),
        (b'"a\nb",c\nd\n', "line 3: 1 column, where line 1 has 2"),
        (b"a,b\n\nc,d\n", "line 2: 0 columns, where line 1 has 2"),
        (b"a\nb,c\n", "line 1: 1 column, column 2 is asked"),
        (b"a,b\nc,\xff\n", "line 2: byte 0xFF"),
        (b"\n\n", "no pairs"),
    ],
)
def test_what_is_no_csv_is_named_by_its_line(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=words):
        read_table(path, None, None)


@pytest.mark.parametrize(("name", "comma"), [("a.csv", ","), ("a.tsv", "\t")])
def test_empty_lines_at_the_end_of_a_table_mean_nothing(
    tmp_path: Path, name: str, comma: str
) -> None:
    (tmp_path / name).write_text(f"a{comma}b\n\n\n")
    assert read_table(tmp_path / name, None, None).source == ["a"]
    (tmp_path / name).write_text(f"a{comma}b\n\nc{comma}d\n")
    with pytest.raises(DataError, match="line 2: 0 columns"):
        read_table(tmp_path / name, None, None)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (
            "a.tsv",
            "ein haus\ta house\nder\tbaum\tthe tree\n",
            "line 2: 3 columns, .* 1 has 2; .*TAB",
        ),
        ("a.tsv", "a\tb\tc\nd\te\n", "line 2: 2 columns, where line 1 has 3"),
        ("a.tsv", "1\t2\nx\ta\tb\n", "line 2: 3 columns, where line 1 has 2"),
        ("a.csv", 'a,b\n"c\nd",e\nf, "g, h"\n', "line 4: 3 columns, .* 1 has 2; .*double quotes"),
    ],
)
def test_a_row_with_another_number_of_columns_is_refused(
    tmp_path: Path, name: str, content: str, words: str
) -> None:
    """Else a text with a TAB loses what comes after it."""
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(DataError, match=words):
        read_table(path, None, None)


def test_the_header_counts_as_a_row(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("de\ten\neins\tone\ttwo\n")
    with pytest.raises(DataError, match="line 2: 3 columns, where line 1 has 2"):
        read_table(path, "de", "en")
    path.write_text("de\ten\tid\neins\tone\t7\nzwei\ttwo\t\n")
    assert read_table(path, "de", "en").target == ["one", "two"]
