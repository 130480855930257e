"""Files of kinds that have shifted, cut or lost lines elsewhere: each gives the right pairs here.

Every kind is written anew; the public collection of the same kinds is read too where it is at hand.
"""

import os
from pathlib import Path

import pytest

from kakehashi.data.config import DataConfig, SplitConfig
from kakehashi.data.corpora import Corpus, load_corpus
from kakehashi.data.pairfiles import read_plain, read_table
from kakehashi.data.pairs import Pairs
from kakehashi.errors import DataError

N = 16
SOURCE = [f"Boot {k} legt am Steg an" for k in range(1, N + 1)]
TARGET = [f"boat {k} moors at the jetty" for k in range(1, N + 1)]


def inside(text: str) -> list[str]:
    """The sources, with `text` in the middle of lines 3 and 9."""
    return [s.replace(" am", f"{text} am") if k in (2, 8) else s for k, s in enumerate(SOURCE)]


def joined(lines: list[str], end: str = "\n") -> bytes:
    return "".join(line + end for line in lines).encode()


def pairs_of(folder: Path, source: bytes, target: bytes = joined(TARGET)) -> Pairs:
    (folder / "harbour.de").write_bytes(source)
    (folder / "harbour.en").write_bytes(target)
    return read_plain(folder / "harbour.de", folder / "harbour.en")


def corpus_of(folder: Path) -> Corpus:
    split = SplitConfig(str(folder / "harbour.de"), str(folder / "harbour.en"))
    return load_corpus(DataConfig(kind="files", train=split, valid_size=0, test_size=0))


@pytest.mark.parametrize(
    "text",
    [
        "\u2028",
        "\u2029",
        "\x85",
        "\x0b",
        "\x0c",
        "\x1c",
        "\x1e",
        "\r",
        "\r\r",
        "\x00",
        "\t",
        "\ufeff",
    ],
    ids=lambda text: "-".join(f"{ord(c):04x}" for c in text),
)
def test_nothing_inside_a_line_ends_it_and_it_is_told(tmp_path: Path, text: str, capsys) -> None:
    pairs = pairs_of(tmp_path, joined(inside(text)))
    assert (pairs.source, pairs.target) == (inside(text), TARGET)
    corpus = corpus_of(tmp_path)
    assert (corpus.train.source, corpus.train.target) == (inside(text), TARGET)
    entries = [(e.split, e.line, e.side, e.action) for e in corpus.ledger]
    assert entries == [("train", 3, "source", "kept"), ("train", 9, "source", "kept")]
    assert all(e.reason.endswith(f"U+{ord(text[0]):04X}") for e in corpus.ledger)
    assert "kept: 2 pairs (lines 3, 9)" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["\u2028", "\x85", "\x0c", "\r\x0c", "\x1d"])
def test_nor_does_it_at_the_lines_end(tmp_path: Path, text: str) -> None:
    lines = [line + text for line in SOURCE]
    assert pairs_of(tmp_path, joined(lines)).source == lines
    assert pairs_of(tmp_path, joined(lines)[:-1]).source == lines


@pytest.mark.parametrize("ends", [("\r\n", "\n"), ("\n", "\r\n"), ("\r\n", "\r\n")])
def test_a_carriage_return_before_the_line_feed_goes_with_it(
    tmp_path: Path, ends: tuple[str, str]
) -> None:
    for cut in (None, -1):
        sides = (joined(SOURCE, ends[0])[:cut], joined(TARGET, ends[1])[:cut])
        pairs = pairs_of(tmp_path, *sides)
        # cut by one byte, CRLF leaves a lone CR at the end of the file: text, as anywhere else
        last = "\r" if cut and ends[0] == "\r\n" else ""
        assert pairs.source == [*SOURCE[:-1], SOURCE[-1] + last]
        assert len(pairs) == N


def test_a_byte_order_mark_is_dropped_at_the_start_only(tmp_path: Path) -> None:
    mark = "\ufeff".encode()
    assert pairs_of(tmp_path, mark + joined(SOURCE), mark + joined(TARGET)).source == SOURCE
    twice = pairs_of(tmp_path, mark * 2 + joined(SOURCE))
    assert twice.source == ["\ufeff" + SOURCE[0], *SOURCE[1:]]
    # two files with their marks, one after the other
    pairs = pairs_of(tmp_path, mark + joined(SOURCE[:5]) + mark + joined(SOURCE[5:]))
    assert pairs.source == [*SOURCE[:5], "\ufeff" + SOURCE[5], *SOURCE[6:]]


def test_blank_lines_on_either_side_take_the_pair_with_them(tmp_path: Path) -> None:
    source, target = list(SOURCE), list(TARGET)
    source[3], target[10], source[14], target[14] = "", "\u200b\t", "  ", "\x00"
    pairs_of(tmp_path, joined(source), joined(target))
    corpus = corpus_of(tmp_path)
    dropped = [(e.line, e.side) for e in corpus.ledger if e.action == "left out"]
    assert dropped == [(4, "source"), (11, "target"), (15, "both")]
    for line, one, other in zip(
        corpus.train.lines, corpus.train.source, corpus.train.target, strict=True
    ):
        assert (one, other) == (SOURCE[line - 1], TARGET[line - 1])
    assert len(corpus.train) == N - 3


@pytest.mark.parametrize(
    ("source", "counts"),
    [
        (joined(SOURCE[:-1]), (15, 16)),
        (joined([*SOURCE, ""]), (17, 16)),
        (joined([*SOURCE[:7], *SOURCE[8:]]), (15, 16)),
        (b"", (0, 16)),
        (b"\n", (1, 16)),
    ],
)
def test_unequal_files_are_refused(tmp_path: Path, source: bytes, counts: tuple[int, int]) -> None:
    words = rf"harbour\.de has {counts[0]} lines and .*harbour\.en has {counts[1]}"
    with pytest.raises(DataError, match=words):
        pairs_of(tmp_path, source)


def test_an_empty_line_at_the_end_of_both_is_a_blank_pair(tmp_path: Path) -> None:
    assert len(pairs_of(tmp_path, joined([*SOURCE, ""]), joined([*TARGET, ""]))) == N + 1
    corpus = corpus_of(tmp_path)
    assert [(e.line, e.side) for e in corpus.ledger] == [(N + 1, "both")]


def test_one_empty_line_is_a_pair_that_nothing_is_left_of(tmp_path: Path) -> None:
    assert pairs_of(tmp_path, b"\n", b"\n").source == [""]
    with pytest.raises(DataError, match="no pairs are left"):
        corpus_of(tmp_path)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16-le", "utf-16-be"])
def test_bytes_of_another_encoding_are_named_with_their_line(tmp_path: Path, encoding: str) -> None:
    lines = [line.encode() for line in SOURCE]
    lines[11] = "Boot 12 fährt über".encode(encoding)
    with pytest.raises(DataError, match=r"harbour\.de, line 12: byte 0x[EFCD]\w is not UTF-8"):
        pairs_of(tmp_path, b"\n".join(lines))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-be", "utf-32-be"])
def test_utf_16_is_told_as_such(tmp_path: Path, encoding: str) -> None:
    content = "\ufeff".join(["", "\n".join(SOURCE)]).encode(encoding)
    if encoding == "utf-16":  # the codec writes a mark itself
        content = "\n".join(SOURCE).encode(encoding)
    name = encoding[:6].upper()
    with pytest.raises(DataError, match=f"harbour.de is {name}, not UTF-8; convert it: iconv -f"):
        pairs_of(tmp_path, content)
    (tmp_path / "harbour.tsv").write_bytes(content)
    with pytest.raises(DataError, match=f"harbour.tsv is {name}"):
        read_table(tmp_path / "harbour.tsv", None, None)


@pytest.fixture(scope="session")
def public_cases() -> Path:
    """The public collection; skips without it."""
    beside = Path(__file__).resolve().parents[2].parent / "shared"
    folder = Path(os.environ.get("KAKEHASHI_SHARED", beside)) / "cases"
    if not folder.is_dir():
        pytest.skip(f"needs the reference data in {folder}, which is not there")
    return folder


@pytest.mark.parametrize("name", ["separators", "crlf_source_only", "lone_cr", "bom"])
def test_public_reports_of_lines_that_shift(public_cases: Path, name: str) -> None:
    pairs = read_plain(public_cases / f"{name}.de", public_cases / f"{name}.en")
    assert len(pairs) == 20
    assert not pairs.source[0].startswith("\ufeff")
    assert not pairs.target[0].startswith("\ufeff")
    for k, target in enumerate(pairs.target, 1):
        assert target.rstrip("\r").endswith(f" {k}")
        assert str(k) in pairs.source[k - 1]


def test_public_reports_of_files_to_refuse(public_cases: Path) -> None:
    with pytest.raises(DataError, match=r"bad_utf8\.(de|en), line 12"):
        read_plain(public_cases / "bad_utf8.de", public_cases / "bad_utf8.en")
    with pytest.raises(DataError, match=r"unequal\.de has 20 .*unequal\.en has 19"):
        read_plain(public_cases / "unequal.de", public_cases / "unequal.en")


def test_public_report_of_quotes(public_cases: Path) -> None:
    pairs = read_table(public_cases / "quotes_and_na.tsv", None, None)
    assert pairs.source == ['"Second', "null", "NA", "007", 'say "hi"', "None"]
    assert pairs.target == ["zweiter", "null", "NA", "007", 'sag "hallo"', "None"]


def test_public_report_of_blank_lines(public_cases: Path) -> None:
    paths = [str(public_cases / f"blank_each_side.{side}") for side in ("de", "en")]
    split = SplitConfig(*paths)
    corpus = load_corpus(DataConfig(kind="files", train=split, valid_size=0, test_size=0))
    assert [(entry.line, entry.action) for entry in corpus.ledger] == [
        (5, "left out"),
        (9, "left out"),
    ]
    for source, target in zip(corpus.train.source, corpus.train.target, strict=True):
        assert source.split()[-1] == target.split()[-1]
    assert len(corpus.train) == 18
