import bz2
import gzip
import io
import lzma
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.data.reading import (
    content_suffix,
    decode_lines,
    is_blank,
    iter_lines,
    read_lines,
    write_bytes,
    write_lines,
)
from kakehashi.errors import DataError

COMPRESS = {
    ".txt": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": zstandard.compress,
}
# Everything that some reader somewhere takes for a line's end, and what else goes wrong.
TRICKY = st.text(
    st.sampled_from("aü犬\n\n\r\r\v\f\x1c\x1d\x1e\x85\u2028\u2029\ufeff\x00\t \u200b"), max_size=40
)


def lines_of(content: bytes) -> list[bytes]:
    """The rule, byte by byte."""
    content = content[3:] if content[:3] == b"\xef\xbb\xbf" else content
    lines, current = [], bytearray()
    for byte in content:
        if byte == 0x0A:
            if current[-1:] == b"\r":
                del current[-1]
            lines.append(bytes(current))
            current.clear()
        else:
            current.append(byte)
    return [*lines, bytes(current)] if current else lines


@given(TRICKY)
def test_lines_end_at_line_feeds_only(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("lines") / "text.txt"
    content = text.encode()
    path.write_bytes(content)
    expected = [line.decode() for line in lines_of(content)]
    assert read_lines(path) == expected
    assert list(iter_lines(path)) == expected
    assert list(decode_lines(io.BytesIO(content), "stdin")) == expected


@given(st.lists(TRICKY.map(lambda t: t.replace("\n", "").rstrip("\r")), max_size=7))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    path = tmp_path_factory.mktemp("lines") / "text.txt"
    write_lines(path, lines)
    expected = [lines[0].removeprefix("\ufeff"), *lines[1:]] if lines else []
    assert read_lines(path) == expected


@pytest.mark.parametrize("suffix", COMPRESS)
def test_compressed_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"text{suffix}"
    # Two parts one after the other are one file in each of these formats.
    path.write_bytes(COMPRESS[suffix](b"eins\nzw") + COMPRESS[suffix](b"ei\n" + b"x" * 300_000))
    assert read_lines(path) == list(iter_lines(path)) == ["eins", "zwei", "x" * 300_000]


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2", ".zst"])
def test_a_truncated_file_is_an_error(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"text{suffix}"
    content = COMPRESS[suffix]("".join(f"Zeile {i * i}\n" for i in range(50_000)).encode())
    path.write_bytes(content[:-30])
    with pytest.raises(DataError, match=f"text{suffix}.*truncated"):
        read_lines(path)
    with pytest.raises(DataError, match="truncated"):
        list(iter_lines(path))


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2", ".zst"])
def test_nothing_after_a_compressed_part_is_lost(tmp_path: Path, suffix: str) -> None:
    """What is neither another whole part nor padding is refused."""
    path = tmp_path / f"text{suffix}"
    first, second = (COMPRESS[suffix](text) for text in (b"a\nb\n", b"c\nd\n"))
    damaged = bytes([second[0] ^ 1]) + second[1:]
    for rest in (damaged, second[:-1], second[:2], b"what does not belong there", b"\0\0\0\0x"):
        path.write_bytes(first + rest)
        with pytest.raises(DataError, match=f"text{suffix}"):
            read_lines(path)
        with pytest.raises(DataError, match=f"text{suffix}"):
            list(iter_lines(path))


def test_parts_of_an_xz_file_may_be_padded_with_fours_of_zero_bytes(tmp_path: Path) -> None:
    path = tmp_path / "text.xz"
    first, second = (lzma.compress(text) for text in (b"a\n", b"b\n"))
    for between, after in ((4, 0), (0, 8), (40_000, 40_000)):
        path.write_bytes(first + bytes(between) + second + bytes(after))
        assert read_lines(path) == ["a", "b"]
        path.write_bytes(first + bytes(between + 1) + second + bytes(after))
        with pytest.raises(DataError, match=rf"damaged \({between + 1} zero bytes"):
            read_lines(path)
    path.write_bytes(first + bytes(6))
    with pytest.raises(DataError, match=r"damaged \(6 zero bytes"):
        read_lines(path)


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2", ".zst"])
def test_a_compressed_file_without_a_byte_is_an_error(tmp_path: Path, suffix: str) -> None:
    """A download that failed must not pass for a text without lines."""
    path = tmp_path / f"text{suffix}"
    path.write_bytes(b"")
    with pytest.raises(DataError, match=f"text{suffix} is empty"):
        read_lines(path)
    with pytest.raises(DataError, match="is empty"):
        list(iter_lines(path))
    path.write_bytes(COMPRESS[suffix](b""))
    assert read_lines(path) == list(iter_lines(path)) == []


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2", ".zst"])
def test_a_file_with_a_false_suffix_is_an_error(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"text{suffix}"
    path.write_bytes(b"just text, not compressed at all\n" * 9)
    with pytest.raises(DataError, match=f"text{suffix}"):
        read_lines(path)


def test_bad_bytes_are_named_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb\n" + "grün".encode("latin-1") + b"\nc\n")
    for read in (read_lines, lambda p: list(iter_lines(p))):
        with pytest.raises(DataError, match="line 3: byte 0xFC"):
            read(path)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        read_lines(tmp_path / "nothing.txt")
    with pytest.raises(DataError, match="is a folder"):
        read_lines(tmp_path)


def test_an_empty_file_has_no_lines_and_a_line_feed_makes_one(tmp_path: Path) -> None:
    for content, expected in ((b"", []), (b"\n", [""]), (b"a\n\n", ["a", ""])):
        path = tmp_path / "text.txt"
        path.write_bytes(content)
        assert read_lines(path) == list(iter_lines(path)) == expected


def test_writing_keeps_the_old_file_when_it_fails(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    write_lines(path, ["alt"])
    with pytest.raises(DataError, match="line 2"):
        write_lines(path, ["neu", "zwei\nZeilen"])
    assert read_lines(path) == ["alt"]
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataError, match="cannot write"):
        write_bytes(tmp_path / "file" / "inside", b"x")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "text.txt"]


@pytest.mark.parametrize("text", ["", "  ", "\u200b", "\t\u3000\ufeff", "\x00", "\u2028"])
def test_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", [".", " a ", "\u200b犬", "🙂", "\ue000"])
def test_not_blank(text: str) -> None:
    assert not is_blank(text)


def test_the_suffix_behind_a_compression() -> None:
    assert content_suffix("a/b.tsv.gz") == content_suffix("b.tsv") == ".tsv"
    assert content_suffix("b.de.zst") == ".de"


@pytest.mark.parametrize("suffix", COMPRESS)
def test_every_byte_read_is_told(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"text{suffix}"
    path.write_bytes(COMPRESS[suffix](b"".join(b"Zeile %d\n" % (k * k) for k in range(40_000))))
    told: list[int] = []
    assert len(list(iter_lines(path, told.append))) == 40_000
    assert sum(told) == path.stat().st_size
    assert len(told) > 1
