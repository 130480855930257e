"""Lines of text files, exactly: UTF-8, split on LF and nowhere else, nothing dropped.

One CR before an LF goes with it, a byte order mark at the start is dropped, and the last line
needs no LF. Files ending in .gz, .xz, .bz2 and .zst are decompressed.
"""

import bz2
import codecs
import gzip
import io
import lzma
import os
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import zstandard

from kakehashi.errors import DataError

COMPRESSIONS = (".gz", ".xz", ".bz2", ".zst")
Watch = Callable[[int], object]
"""Told how many bytes were just taken from the disk."""
_BOM = b"\xef\xbb\xbf"
# UTF-32 first: in one order of bytes its mark starts with that of UTF-16.
_OTHER_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_INVISIBLE = frozenset(("Cc", "Cf", "Zs", "Zl", "Zp"))
DECOMPRESSION_ERRORS = (
    EOFError,
    gzip.BadGzipFile,
    lzma.LZMAError,
    zlib.error,
    zstandard.ZstdError,
)
"""Of damaged files, beside OSError, by whichever library they are read."""


def is_blank(text: str) -> bool:
    """Whether the text has no visible character: only spaces, controls, U+200B and the like."""
    return not text.strip() or all(unicodedata.category(c) in _INVISIBLE for c in text)


def expand(path: str | Path) -> Path:
    """The path with ~ replaced by the home folder; relative ones start at the working folder."""
    return Path(path).expanduser()


def content_suffix(path: str | Path) -> str:
    """The suffix that tells the format, a compression's left aside: .tsv for a.tsv.gz."""
    path = Path(path)
    return Path(path.stem).suffix if path.suffix in COMPRESSIONS else path.suffix


@contextmanager
def open_bytes(path: str | Path, watch: Watch | None = None) -> Iterator[BinaryIO]:
    """Open a file, decompressed according to its suffix; `watch` hears of the bytes read.

    Raises DataError, naming the file, when it is missing, unreadable, truncated or damaged; the
    last two also while the caller reads.
    """
    path = expand(path)
    with open_raw(path) as raw:
        if path.suffix in COMPRESSIONS and not raw.peek(1):
            raise DataError(f"{path} is empty, which no compressed file is; fetch it again")
        stream = raw if watch is None else _watched(raw, watch)
        try:
            with _decompressed(stream, path.suffix) as content:
                yield content
        except DECOMPRESSION_ERRORS as error:
            raise DataError(f"{path} is truncated or damaged ({error}); fetch it again") from error


@contextmanager
def open_raw(path: str | Path) -> Iterator[io.BufferedReader]:
    """Open a file as it lies on the disk; raises DataError, naming it, where it can't be read."""
    path = expand(path)
    try:
        with path.open("rb") as stream:
            yield stream
    except IsADirectoryError as error:
        raise DataError(f"{path} is a folder; give one of the files in it") from error
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist (looked from {Path.cwd()})") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def read_bytes(path: str | Path) -> bytes:
    """The whole file, decompressed; raises DataError like `open_bytes`."""
    with open_bytes(path) as stream:
        return stream.read()


def check_whole(path: str | Path) -> None:
    """Raises DataError like `open_bytes` where a compressed file can't be read to its end."""
    with open_bytes(path) as stream:
        while Path(path).suffix in COMPRESSIONS and stream.read(1 << 20):
            pass


def read_lines(path: str | Path) -> list[str]:
    """All lines of a text file, without their ends. Raises DataError, with the line of bad bytes.

    An empty file has no lines; a file of one LF has one, empty.
    """
    content = read_bytes(path).removeprefix(_BOM).replace(b"\r\n", b"\n")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        start = content.rfind(b"\n", 0, error.start) + 1
        line = content.count(b"\n", 0, start) + 1
        raise DataError(
            _bad_bytes(str(path), line, content[start:], error.start - start)
        ) from error
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def iter_lines(path: str | Path, watch: Watch | None = None) -> Iterator[str]:
    """The lines of `read_lines`, one at a time, for files larger than memory."""
    with open_bytes(path, watch) as stream:
        yield from decode_lines(stream, str(path))


def decode_lines(stream: Iterable[bytes], name: str) -> Iterator[str]:
    """The lines of a binary stream (a file, standard input), by the rules of this module.

    `name` stands for the stream in errors. Raises DataError with the line of bad bytes.
    """
    for number, raw in enumerate(stream, 1):
        line = raw.removeprefix(_BOM) if number == 1 else raw
        if not line:
            continue
        if line.endswith(b"\n"):
            line = line[: -2 if line.endswith(b"\r\n") else -1]
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(_bad_bytes(name, number, line, error.start)) from error


def write_lines(path: str | Path, lines: Iterable[str]) -> None:
    """Write a UTF-8 text file, each line ended by LF, whole or not at all.

    Raises DataError when it can't be written or a line holds an LF (which would make two).
    """
    parts: list[str] = []
    for number, line in enumerate(lines, 1):
        if "\n" in line:
            raise DataError(f"line {number} for {path} holds a line feed")
        parts.append(line + "\n")
    write_bytes(path, "".join(parts).encode("utf-8", "replace"))


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file through a temporary neighbour: synced, then renamed into place.

    Raises DataError when the folder can't be written to.
    """
    write_chunks(path, (content,))


def write_chunks(path: str | Path, chunks: Iterable[bytes]) -> None:
    """Write a file like `write_bytes`, from parts that need not be in memory together."""
    path = expand(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as stream:
                stream.writelines(chunks)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from error


def sync_folder(folder: Path) -> None:
    """Have the folder's files, and the folder itself, reach the disk."""
    for path in (*folder.iterdir(), folder):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _bad_bytes(name: str, number: int, line: bytes, place: int) -> str:
    """What is wrong with a line, or with the whole file, that isn't UTF-8 at `place`."""
    for mark, encoding in _OTHER_MARKS.items() if number == 1 else ():
        if line.startswith(mark):
            return f"{name} is {encoding}, not UTF-8; convert it: iconv -f {encoding} -t utf-8"
    hint = ", and NUL bytes beside it: perhaps UTF-16" if b"\0" in line[:1000] else ""
    return (
        f"{name}, line {number}: byte 0x{line[place]:02X} is not UTF-8{hint}; convert the file "
        "(for example: iconv -f latin1 -t utf-8) or mend the line"
    )


def _decompressed(stream: BinaryIO, suffix: str) -> BinaryIO:
    match suffix:
        case ".gz":
            return cast(BinaryIO, gzip.open(stream, "rb"))
        case ".xz":
            return _joined(stream, lzma.LZMADecompressor, padded=True)
        case ".bz2":
            return _joined(stream, bz2.BZ2Decompressor)
        case ".zst":
            return _joined(stream, lambda: zstandard.ZstdDecompressor().decompressobj())
        case _:
            return stream


def _joined(stream: BinaryIO, begin: Callable[[], "_Member"], padded: bool = False) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(_Joined(stream, begin, padded), 1 << 17))


def _watched(stream: BinaryIO, watch: Watch) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(_Watched(stream, watch), 1 << 17))


class _Watched(io.RawIOBase):
    """A file that tells how many bytes of it were read."""

    def __init__(self, stream: BinaryIO, watch: Watch) -> None:
        self._stream, self._watch = stream, watch

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        n = self._stream.readinto(buffer)  # type: ignore[attr-defined]
        self._watch(n)
        return int(n)


class _Member(Protocol):
    """Decompresses one of the parts that a compressed file consists of."""

    @property
    def eof(self) -> bool:
        """Whether the part has come to its end."""

    @property
    def unused_data(self) -> bytes:
        """What was given beyond it."""

    def decompress(self, data: bytes, /) -> bytes:
        """What could be made of the data; raises an exception where it is damaged."""


class _Joined(io.RawIOBase):
    """The parts of a compressed file as one stream; EOFError when the last one is cut short.

    The libraries' own readers take what follows the first part, where it is damaged, for no data at
    all, and a truncated .zst file for a shorter one, both without a word.
    """

    def __init__(self, stream: BinaryIO, begin: Callable[[], _Member], padded: bool) -> None:
        """`padded` as .xz may be: fours of zero bytes after a part (section 2.2 of its format)."""
        self._stream, self._ready = stream, memoryview(b"")
        self._begin, self._padded = begin, padded
        self._member = begin()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._ready:
            if self._member.eof:
                compressed = self._next()
                if not compressed:
                    return 0
                self._member = self._begin()
            else:
                compressed = self._read()
                if not compressed:
                    raise EOFError("the compressed data ends early")
            self._ready = memoryview(self._member.decompress(compressed))
        n = min(len(buffer), len(self._ready))
        buffer[:n], self._ready = self._ready[:n], self._ready[n:]
        return n

    def _next(self) -> bytes:
        """Where the next part starts; empty at the file's end."""
        compressed, zeros = self._member.unused_data or self._read(), 0
        while self._padded and compressed.startswith(b"\0"):
            start = compressed.lstrip(b"\0")
            zeros += len(compressed) - len(start)
            compressed = start or self._read()
        if zeros % 4:
            raise lzma.LZMAError(f"{zeros} zero bytes after a part")
        return compressed

    def _read(self) -> bytes:
        # Not more: where the text repeats itself a thousand times as much comes out at once.
        return self._stream.read(1 << 14)
