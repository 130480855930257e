"""Text in and out of a command: files or the standard streams, UTF-8 whatever the locale."""

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from kakehashi.data.reading import COMPRESSIONS, decode_lines, iter_lines
from kakehashi.errors import DataError


def input_lines(path: Path | None) -> Iterator[str]:
    """Lines of a file, or of standard input; see ``data.reading`` for what a line is."""
    if path is None:
        return decode_lines(sys.stdin.buffer, "standard input")
    return iter_lines(path)


def count_lines(path: Path | None) -> int | None:
    """How many lines there are to come; None where counting would use them up (stdin, a pipe).

    Raises:
        DataError: for a file that is missing or not text, before any work has been done.
    """
    if path is None or (path.exists() and not path.is_file()):
        return None
    return sum(1 for _ in iter_lines(path))


@contextmanager
def output_stream(path: Path | None) -> Iterator[BinaryIO]:
    """Where to write results: standard output, or a file that appears when all of it is there.

    The file is opened at once, so that a folder that is missing or not writable is found out
    before the work and not after it.

    Raises:
        DataError: when it cannot be written.
    """
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = path.expanduser()
    if path.suffix in COMPRESSIONS:
        raise DataError(f"{path}: results are plain text; give a name that does not end in that")
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as stream:
                yield stream
        else:
            with _replacement(path) as stream:
                yield stream
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from error


@contextmanager
def _replacement(path: Path) -> Iterator[BinaryIO]:
    """A temporary neighbour that takes the path's place unless something goes wrong."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(stream: BinaryIO, lines: Iterable[str]) -> None:
    """Each line ended by LF, and all of them out of this process's hands at the end."""
    stream.write("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
    stream.flush()
