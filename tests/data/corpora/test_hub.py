import gzip
import json
import lzma
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from kakehashi.data.config import DataConfig, SplitConfig
from kakehashi.data.corpora import hub, load_corpus
from kakehashi.errors import ConfigError, CorpusError, DataError


@pytest.fixture
def hub_folder(small_corpus, tmp_path: Path, monkeypatch) -> Path:
    """A data set as it lies on the hub: one file a split, pairs under `translation`."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "captions"
    folder.mkdir()
    rows = list(zip(small_corpus.source, small_corpus.target, strict=True))
    for name, part in (("train", rows[:101]), ("validation", rows[101:112]), ("test", rows[112:])):
        lines = [json.dumps({"id": 7, "translation": {"de": s, "en": t}}) for s, t in part]
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
    return folder


def config(folder: Path | str | None, **settings) -> DataConfig:
    columns = {"source_column": "translation.de", "target_column": "translation.en"}
    return DataConfig(
        name="captions",
        kind="hub",
        hub_path=None if folder is None else str(folder),
        **(columns | settings),
    )


def test_a_folder_of_the_same_form(hub_folder: Path, small_corpus) -> None:
    corpus = load_corpus(
        config(
            hub_folder,
            train=SplitConfig(split="train"),
            valid=SplitConfig(split="validation"),
            test=SplitConfig(split="test"),
        )
    )
    assert corpus.train.source == small_corpus.source[:101]
    assert corpus.valid.target == small_corpus.target[101:112]
    assert corpus.test.source == small_corpus.source[112:]
    assert str(hub_folder) in corpus.attribution


def test_splits_that_are_not_named_are_held_out(hub_folder: Path) -> None:
    corpus = load_corpus(config(hub_folder, valid_size=11, test_size=13))
    assert [len(p) for p in (corpus.train, corpus.valid, corpus.test)] == [77, 11, 13]


def test_what_the_data_set_does_not_have(hub_folder: Path) -> None:
    with pytest.raises(DataError, match=r"no field 'fr'; there are id, translation\.de"):
        load_corpus(config(hub_folder, source_column="fr"))
    with pytest.raises(DataError, match="row 1: field 'id' is 7, not text"):
        load_corpus(config(hub_folder, source_column="id"))
    with pytest.raises(CorpusError, match="cannot load split 'dev'"):
        load_corpus(config(hub_folder, train=SplitConfig(split="dev")))


@pytest.mark.parametrize("streaming", [False, True], ids=["memory", "stream"])
@pytest.mark.parametrize("name", ["train.csv", "train.tsv"])
def test_tables_are_refused_which_the_library_does_not_read_verbatim(
    hub_folder: Path, name: str, streaming: bool
) -> None:
    """Of these rows it makes one, and of NA nothing."""
    (hub_folder / "train.jsonl").unlink()
    comma = "," if name == "train.csv" else "\t"
    rows = ["de,en", 'er sagte "ja,he said yes', 'sie ging",she left', "NA,NA"]
    (hub_folder / name).write_text("\n".join(rows).replace(",", comma))
    for split in ("validation", "test"):
        (hub_folder / f"{split}.jsonl").unlink()
    own = config(hub_folder, source_column="de", target_column="en", streaming=streaming)
    with pytest.raises(DataError, match=r"captions' is made of TSV or CSV files.*data=files"):
        load_corpus(own)


@pytest.mark.parametrize("streaming", [False, True], ids=["memory", "stream"])
def test_bytes_that_are_not_utf_8_are_named_with_their_row(
    tmp_path: Path, small_corpus, streaming: bool, monkeypatch
) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "pairs"
    folder.mkdir()
    target = [text.encode() for text in small_corpus.target]
    target[100] = b"gr\xfcn"
    table = {"de": small_corpus.source, "en": pa.array(target, pa.binary()).view(pa.string())}
    pq.write_table(pa.table(table), folder / "train.parquet", row_group_size=30)
    own = config(folder, source_column="de", target_column="en", streaming=streaming)
    with pytest.raises(DataError, match=r"pairs.*, row 101: field 'en' holds byte 0xFC"):
        load_corpus(own)


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_truncated_file_is_named(hub_folder: Path, suffix: str) -> None:
    pack = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.compress}[suffix]
    content = pack((hub_folder / "train.jsonl").read_bytes())
    (hub_folder / f"train-2.jsonl{suffix}").write_bytes(content[:-20])
    with pytest.raises(DataError, match=rf"train-2\.jsonl\{suffix} is truncated or damaged"):
        load_corpus(config(hub_folder, train=SplitConfig(split="train")))


def test_a_file_that_cannot_be_read_gives_the_reason(hub_folder: Path) -> None:
    (hub_folder / "train.jsonl").write_bytes(b"")
    with pytest.raises(CorpusError, match=r"cannot read split 'train' of .*first file has no row"):
        load_corpus(config(hub_folder))
    (hub_folder / "train.jsonl").write_text('{"translation": {"de": "a", "en": "b"}}\n{"transl')
    with pytest.raises(CorpusError, match=r"cannot read split 'train' of .*JSON parse error"):
        load_corpus(config(hub_folder))


def test_a_hub_out_of_reach_gives_one_sentence(hub_folder: Path) -> None:
    with pytest.raises(CorpusError, match="check the name and the network connection") as caught:
        load_corpus(config("nobody/nothing"))
    assert "\n" not in str(caught.value)
    assert "data.hub_path" in str(caught.value)


def test_settings_that_are_not_for_the_hub(hub_folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"data\.hub_path=NAME"):
        load_corpus(config(None))
    with pytest.raises(ConfigError, match=r"give data\.valid\.split"):
        load_corpus(config(hub_folder, valid=SplitConfig(path="dev.tsv")))


def test_a_second_start_reads_nothing_again_but_notices_what_changed(
    hub_folder: Path, monkeypatch
) -> None:
    settings = {"valid_size": 11, "test_size": 13}
    first = load_corpus(config(hub_folder, **settings))
    path = hub_folder / "train.jsonl"
    before, content = path.stat(), path.read_text()
    with monkeypatch.context() as patch:
        patch.setattr(hub, "ingest", None)  # to read again would fail
        assert load_corpus(config(hub_folder, **settings)).train.digest() == first.train.digest()
    # The same size and time, and other text.
    words = " ".join(first.train.source).split()
    word = next(word for word in words if word.isascii() and word.isalpha() and len(word) > 4)
    path.write_text(content.replace(word, "Q" * len(word)))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    changed = load_corpus(config(hub_folder, **settings))
    assert any("Q" * len(word) in text for text in changed.train.source)
