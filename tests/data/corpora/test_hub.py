import json
import os
from pathlib import Path

import pytest

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
    with pytest.raises(DataError, match="row 1: 'id' is 7, not text"):
        load_corpus(config(hub_folder, source_column="id"))
    with pytest.raises(CorpusError, match="cannot load split 'dev'"):
        load_corpus(config(hub_folder, train=SplitConfig(split="dev")))


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
