"""Text in and out of a command: files or the standard streams, UTF-8 whatever the locale."""

import os
import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import BinaryIO

from kakehashi.data.reading import COMPRESSIONS, decode_lines, iter_lines
from kakehashi.errors import DataError

STDIN, STDOUT = "standard input", "standard output"


@dataclass(frozen=True)
class Output:
    """Where results go, and what to call it in an error."""

    stream: BinaryIO
    name: str


def hold_standard_streams() -> None:
    """Give a stream that was closed before the start (``>&-``) its number back, to no purpose.

    Otherwise the next file that is opened takes the number, and what a library prints would land
    in it. Reading a closed input or writing to a closed output fails with the usual message;
    closed errors go nowhere.
    """
    for number, name, useless, mode in (
        (0, "stdin", os.O_WRONLY, "r"),
        (1, "stdout", os.O_RDONLY, "w"),
        (2, "stderr", os.O_WRONLY, "w"),
    ):
        if getattr(sys, name) is None and os.open(os.devnull, useless) == number:
            setattr(sys, name, open(number, mode, encoding="utf-8"))  # noqa: SIM115


def drop_unwritten() -> None:
    """Give up what standard output could not take; Python would try again at its end, and fail."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            sys.stdout.close()


def input_lines(path: Path | None) -> Iterator[str]:
    """Lines of a file, or of standard input; see ``data.reading`` for what a line is.

    Raises:
        DataError: when it cannot be read, and with the number of a line that is not text.
    """
    if path is not None:
        yield from iter_lines(path)
        return
    try:
        yield from decode_lines(sys.stdin.buffer, STDIN)
    except OSError as error:
        raise DataError(f"cannot read {STDIN}: {error.strerror or error}") from error


def count_lines(path: Path | None) -> int | None:
    """How many lines there are to come; None where counting would use them up (stdin, a pipe).

    Raises:
        DataError: for a file that is missing or not text, before any work has been done.
    """
    if path is None or (path.exists() and not path.is_file()):
        return None
    return sum(1 for _ in iter_lines(path))


@contextmanager
def output_stream(path: Path | None) -> Iterator[Output]:
    """Where to write results: standard output, or a file that appears when all of it is there.

    The file is opened at once, so that a folder that is missing or not writable is found out
    before the work and not after it. A file that is there already keeps its permissions, and a
    link its place.

    Raises:
        DataError: when it cannot be written.
    """
    if path is None:
        yield Output(sys.stdout.buffer, STDOUT)
        return
    path = path.expanduser()
    if path.suffix in COMPRESSIONS:
        raise DataError(f"{path}: results are plain text; give a name that does not end in that")
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as stream:
                yield Output(stream, str(path))
        elif path.exists() and not os.access(path, os.W_OK):
            raise DataError(f"cannot write {path}: it is write-protected")
        else:
            with _replacement(path.resolve()) as stream:
                yield Output(stream, str(path))
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from error


@contextmanager
def _replacement(path: Path) -> Iterator[BinaryIO]:
    """A temporary neighbour that takes the path's place unless something goes wrong."""
    descriptor, name = tempfile.mkstemp(prefix=".kakehashi.", dir=path.parent)
    temporary = Path(name)
    try:
        with terminated_gently(), os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(_mode(path))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _mode(path: Path) -> int:
    """The permissions of a file, or of a new one."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


@contextmanager
def terminated_gently() -> Iterator[None]:
    """Let SIGTERM end the program as Ctrl-C does, temporary files cleared away."""

    def end(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    previous = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def write_text(output: Output, lines: Iterable[str]) -> None:
    """Each line ended by LF, and all of them out of this process's hands at the end.

    Raises:
        DataError: when they cannot be written: a full disk, a closed output.
        BrokenPipeError: when the reader of standard output has gone.
    """
    try:
        output.stream.write("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
        output.stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(f"cannot write {output.name}: {error.strerror or error}") from error
