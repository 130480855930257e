import gzip
from pathlib import Path

import pytest

from kakehashi.data.config import SplitConfig
from kakehashi.data.shards import ShardFiles, find_shards
from kakehashi.errors import DataError


def found(split: SplitConfig) -> list[ShardFiles]:
    return find_shards(split, None, None, ("de", "en"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_bytes(b"")


def test_in_the_order_of_their_names(folder: Path) -> None:
    touch(folder, "part-b.tsv", "part-a.tsv", "part-c.tsv.gz", "other.tsv")
    (folder / "part-d.tsv").mkdir()
    assert [Path(s.name).name for s in found(SplitConfig(path="part-*"))] == [
        "part-a.tsv",
        "part-b.tsv",
        "part-c.tsv.gz",
    ]


def test_partners_go_together(folder: Path) -> None:
    touch(folder, "p-1.de", "p-2.de", "p-1.en", "p-2.en")
    shards = found(SplitConfig("p-?.de", "p-*.en"))
    names = [tuple(Path(path).name for path in shard.paths) for shard in shards]
    assert names == [("p-1.de", "p-1.en"), ("p-2.de", "p-2.en")]


def test_a_shard_without_its_partner_is_named(folder: Path) -> None:
    touch(folder, "p-1.de", "p-2.de", "p-3.de", "p-1.en", "p-3.en")
    with pytest.raises(
        DataError, match=r"p-\*\.de matches 3 files and p-\*\.en matches 2.*partner is .*p-2\.de"
    ):
        found(SplitConfig("p-*.de", "p-*.en"))
    # As many on both sides, and still not the same ones.
    touch(folder, "p-4.en")
    with pytest.raises(DataError, match=r"matches 3 files and .* 3:.*partner is .*p-2\.de"):
        found(SplitConfig("p-*.de", "p-*.en"))
    with pytest.raises(DataError, match=r"matches 3 files and p-1\.en matches 1"):
        found(SplitConfig("p-*.de", "p-1.en"))


def test_no_match_is_an_error(folder: Path) -> None:
    with pytest.raises(DataError, match=r"no file matches part-\*\.tsv \(looked from "):
        found(SplitConfig(path="part-*.tsv"))


def test_a_file_may_be_called_like_a_pattern(folder: Path) -> None:
    touch(folder, "what?.tsv", "whatx.tsv", "[1].tsv", "1.tsv")
    assert [s.name for s in found(SplitConfig(path="what?.tsv"))] == ["what?.tsv"]
    assert [s.name for s in found(SplitConfig(path="[1].tsv"))] == ["[1].tsv"]


def test_rows_and_bytes(folder: Path) -> None:
    (folder / "a.tsv.gz").write_bytes(gzip.compress(b"eins\tone\nzwei\ttwo\n"))
    (shard,) = found(SplitConfig(path="a.tsv.gz"))
    told: list[int] = []
    assert list(shard.rows(told.append)) == [(1, "eins", "one"), (2, "zwei", "two")]
    assert sum(told) == shard.size
    (folder / "a.jsonl").write_text('{"de": "eins", "en": "one"}\n')
    (shard,) = found(SplitConfig(path="a.jsonl"))
    assert list(shard.rows()) == [(1, "eins", "one")]
