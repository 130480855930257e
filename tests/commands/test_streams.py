"""Text in and out of a command: what can go wrong with files and streams is said, in one line."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from kakehashi.commands.streams import STDOUT, Output, input_lines, output_stream, write_text
from kakehashi.errors import DataError


def test_a_replaced_file_keeps_its_permissions_and_a_new_one_follows_the_mask(
    tmp_path: Path,
) -> None:
    (tmp_path / "private").write_text("old\n")
    (tmp_path / "private").chmod(0o600)
    before = os.umask(0o027)
    try:
        for name in ("private", "new"):
            with output_stream(tmp_path / name) as output:
                write_text(output, ["eins", "zwei"])
            assert (tmp_path / name).read_text() == "eins\nzwei\n"
    finally:
        os.umask(before)
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("private", "new")]
    assert modes == [0o600, 0o640]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for name in ("old", "none"):
        (tmp_path / name).symlink_to(Path("there") / name)
    (tmp_path / "there" / "old").write_text("old\n")
    for name in ("old", "none"):
        with output_stream(tmp_path / name) as output:
            write_text(output, ["neu"])
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "there" / name).read_text() == "neu\n"


def test_a_long_name_is_a_name(tmp_path: Path) -> None:
    with output_stream(tmp_path / ("ü" * 127)) as output:
        write_text(output, ["eins"])
    assert (tmp_path / ("ü" * 127)).read_text() == "eins\n"


def test_what_cannot_be_written_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept").write_text("old\n")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    for path, message in ((tmp_path / "kept", "write-protected"), (tmp_path, "Is a directory")):
        with pytest.raises(DataError, match=message), output_stream(path):
            pytest.fail("nothing is worked for in vain")
    assert (tmp_path / "kept").read_text() == "old\n"


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    said = pytest.raises(DataError, match="cannot write /dev/full: No space left")
    with said, output_stream(Path("/dev/full")) as output:
        write_text(output, ["eins"])
    full = io.FileIO("/dev/full", "w")
    with pytest.raises(DataError, match="cannot write standard output: No space left"):
        write_text(Output(cast(BinaryIO, full), STDOUT), ["eins"])
    full.close()


def test_a_terminated_command_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("old\n")
    before = signal.getsignal(signal.SIGTERM)

    def work() -> None:
        with output_stream(tmp_path / "out") as output:
            write_text(output, ["eins"])
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()

    with pytest.raises(SystemExit) as end:
        work()
    assert end.value.code == 143
    assert signal.getsignal(signal.SIGTERM) is before
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old\n"]


@pytest.mark.parametrize(
    ("redirection", "message"),
    [
        (">/dev/full", b"error: [Errno 28] No space left on device\n"),
        (">&-", b"error: [Errno 9] Bad file descriptor\n"),
    ],
)
def test_results_that_cannot_be_written_are_a_failure(
    tmp_path: Path, redirection: str, message: bytes
) -> None:
    (tmp_path / "both").write_text("der mond scheint\n")
    words = "evaluate --hypothesis both --reference both --target-language en"
    ended = shell(tmp_path, f"{words} {redirection}")
    assert ended.returncode == 1
    assert ended.stderr == message


def test_a_command_needs_no_standard_stream_that_it_does_not_use(
    model_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "in").write_text("hund\n\n")
    ended = shell(tmp_path, f"translate '{model_folder}' -i in -o out <&- >&- 2>&-")
    assert ended.returncode == 0
    assert (tmp_path / "out").read_bytes().count(b"\n") == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_a_closed_standard_input_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "written").open("w") as stream:
        monkeypatch.setattr(
            sys, "stdin", io.TextIOWrapper(io.FileIO(stream.fileno(), closefd=False))
        )
        with pytest.raises(DataError, match="cannot read standard input"):
            list(input_lines(None))


def shell(folder: Path, words: str) -> "subprocess.CompletedProcess[bytes]":
    """`kakehashi` as a shell runs it."""
    return subprocess.run(
        f"'{sys.executable}' -m kakehashi.commands.main {words}",
        shell=True,
        cwd=folder,
        capture_output=True,
        check=False,
    )
