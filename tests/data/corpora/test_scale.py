"""Corpora in several files, several corpora, and the cache of what was prepared."""

import gzip
import json
import os
from pathlib import Path

import pytest

from kakehashi.data.config import DataConfig, PartConfig, SplitConfig
from kakehashi.data.corpora import Corpus, files, load_corpus
from kakehashi.data.corpora.base import Part
from kakehashi.data.texts import Texts
from kakehashi.errors import ConfigError, DataError


@pytest.fixture
def folder(small_corpus, tmp_path: Path, monkeypatch) -> Path:
    """The small corpus in one TSV file, in three shards of it, and in three pairs of files."""
    monkeypatch.chdir(tmp_path)
    rows = list(zip(small_corpus.source, small_corpus.target, strict=True))
    (tmp_path / "all.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in rows))
    for k, part in enumerate((rows[:50], rows[50:51], rows[51:])):
        text = "".join(f"{s}\t{t}\n" for s, t in part)
        (tmp_path / f"part-{k}.tsv.gz").write_bytes(gzip.compress(text.encode()))
        for side, language in ((0, "de"), (1, "en")):
            (tmp_path / f"part-{k}.{language}").write_text("".join(p[side] + "\n" for p in part))
    return tmp_path


def config(**settings) -> DataConfig:
    sizes = {"valid_size": 11, "test_size": 13, "train": SplitConfig(path="all.tsv")}
    return DataConfig(name="own", kind="files", **(sizes | settings))


def same(one: Corpus, other: Corpus) -> bool:
    return all(
        getattr(one, name).digest() == getattr(other, name).digest()
        and list(getattr(one, name).lines) == list(getattr(other, name).lines)
        for name in ("train", "valid", "test")
    )


def test_shards_are_the_corpus_they_were_cut_from(folder: Path) -> None:
    whole = load_corpus(config())
    assert same(load_corpus(config(train=SplitConfig(path="part-*.tsv.gz"))), whole)
    sharded = load_corpus(config(train=SplitConfig("part-*.de", "part-*.en")))
    assert same(sharded, whole)
    for i, line in enumerate(whole.train.lines):
        name, place = sharded.train.place(i)
        k = 0 if line <= 50 else 1 if line == 51 else 2
        assert [Path(path).name for path in name.split(", ")] == [f"part-{k}.de", f"part-{k}.en"]
        assert place == line - (0, 50, 51)[k]
        assert whole.train.place(i) == ("all.tsv", line)


def test_errors_name_the_shard_and_its_line(folder: Path) -> None:
    with (folder / "part-1.en").open("a") as stream:
        stream.write("one too many\n")
    with pytest.raises(DataError, match=r"part-1\.de has 1 lines and .*part-1\.en has 2"):
        load_corpus(config(train=SplitConfig("part-*.de", "part-*.en")))
    (folder / "part-2.tsv.gz").write_bytes(gzip.compress(b"eins\tone\nnothing\n"))
    with pytest.raises(DataError, match=r"part-2\.tsv\.gz, line 2: 1 column, where line 1 has 2"):
        load_corpus(config(train=SplitConfig(path="part-*.tsv.gz")))
    assert not list((folder / "data" / "cache").iterdir())


def test_a_second_start_reads_nothing_again(folder: Path, small_corpus, monkeypatch) -> None:
    text = (folder / "all.tsv").read_text().split("\n")
    (folder / "all.tsv").write_text("\n".join([*text[:7], " \tx", *text[7:]]))
    first = load_corpus(config())
    monkeypatch.setattr(files, "ingest", None)  # to read again would fail
    second = load_corpus(config(batch_tokens=77, max_length=5))
    assert same(first, second)
    assert isinstance(second.train.source, Texts)
    assert list(second.ledger) == list(first.ledger) != []
    assert second.provenance == first.provenance
    # Found again by content: a file that was touched, copied back or rewritten is the same.
    os.utime(folder / "all.tsv", (1, 1))
    assert same(load_corpus(config()), first)
    with pytest.raises(TypeError):
        load_corpus(config(valid_size=12))


def test_changed_content_is_noticed_whatever_the_times_say(folder: Path) -> None:
    first = load_corpus(config())
    path = folder / "all.tsv"
    before = path.stat()
    content = path.read_bytes()
    line = content.index(b"\n") + 1
    assert chr(content[line]).isalpha()
    path.write_bytes(content[:line] + b"Q" + content[line + 1 :])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    changed = load_corpus(config())
    assert not same(first, changed)
    assert sum(text.startswith("Q") for text in changed.train.source) == 1


def test_a_damaged_cache_is_named(folder: Path) -> None:
    load_corpus(config())
    (kept,) = (folder / "data" / "cache").iterdir()
    assert sorted(path.suffix for path in kept.iterdir() if path.is_dir()) == []
    (kept / "valid-lines.npy").unlink()
    with pytest.raises(DataError, match=f"{kept.name} is damaged"):
        load_corpus(config())


def test_empty_shards_are_no_reason_to_stop(folder: Path) -> None:
    (folder / "part-00.de").write_bytes(b"")
    (folder / "part-00.en").write_bytes(b"")
    assert len(load_corpus(config(train=SplitConfig("part-*.de", "part-*.en"))).train) == 108
    with pytest.raises(DataError, match=r"part-00\.de, part-00\.en: there are no pairs in it"):
        load_corpus(config(train=SplitConfig("part-00.de", "part-00.en")))


def mixture(**settings) -> DataConfig:
    corpora = {
        "big": PartConfig(path="part-[02].tsv.gz", weight=0.5),
        "one": PartConfig(path="one.jsonl", weight=3, source_column="s", target_column="t"),
    }
    empty = {"train": SplitConfig(), "kind": "mixture", "corpora": corpora}
    made = {"name": "mixed", "valid_size": 0, "test_size": 9} | empty | settings
    return DataConfig(**made)


@pytest.fixture
def one_more(folder: Path) -> None:
    rows = [("Ein kurzer Satz.", "A short sentence."), ("Noch einer folgt.", "One more follows.")]
    lines = [json.dumps({"s": source, "t": target}) + "\n" for source, target in rows]
    (folder / "one.jsonl").write_text("".join(lines))


@pytest.mark.usefixtures("one_more")
def test_several_corpora(folder: Path, small_corpus) -> None:
    for corpus in (load_corpus(mixture()), load_corpus(mixture())):
        assert corpus.parts == (Part("big", 0.5, 131), Part("one", 3, 133))
        assert len(corpus.train) + len(corpus.test) == 133
        for i, line in enumerate(corpus.train.lines):
            name, place = corpus.train.place(i)
            assert (Path(name).name == "one.jsonl") == (line > 131)
            if line > 131:
                assert (
                    corpus.train.source[i] == ("Ein kurzer Satz.", "Noch einer folgt.")[place - 1]
                )


@pytest.mark.usefixtures("one_more")
def test_settings_of_mixtures(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"data\.corpora\.NAME\.path=FILE"):
        load_corpus(mixture(corpora={}))
    with pytest.raises(ConfigError, match=r"from data\.corpora and from nowhere"):
        load_corpus(mixture(train=SplitConfig(path="all.tsv")))
    with pytest.raises(ConfigError, match=r"data\.corpora\.web\.source=FILE"):
        load_corpus(mixture(corpora={"web": PartConfig()}))
    with pytest.raises(ConfigError, match=r"weights or data\.temperature"):
        mixture(temperature=2.0)
    with pytest.raises(ConfigError, match="above 0"):
        PartConfig(path="a.tsv", weight=0)
    with pytest.raises(ConfigError, match=r"go with data\.kind=mixture"):
        config(temperature=2.0)
