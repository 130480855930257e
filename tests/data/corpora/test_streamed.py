"""A data set on the hub, read as a stream: what is trained on, and what the ledger says."""

import gzip
import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kakehashi.data.config import DataConfig, FilterConfig, SplitConfig
from kakehashi.data.corpora import load_corpus
from kakehashi.data.corpora.base import Corpus
from kakehashi.data.corpora.streamed import _version
from kakehashi.data.integrity import overlaps
from kakehashi.data.ledger import Ledger
from kakehashi.data.pairs import Pairs
from kakehashi.data.share import Share, Start
from kakehashi.data.stream import SHARD, pairs_of
from kakehashi.errors import ConfigError, CorpusError, DataError

FAULTS = ["", " &amp; ", "\u200b", " Слова на русском", " one more word and another", "\x00", "  "]
FILTERS = FilterConfig(
    splits=["train", "valid"],
    clean=["entities", "controls", "spaces", "nfc"],
    max_words=7,
    max_ratio=4,
    same=True,
    min_script=0.5,
)


@pytest.fixture
def rows(small_corpus) -> list[tuple[str, str]]:
    """Pairs with a fault here and there, some of whose sentences occur twice."""
    rows = []
    for k, (source, target) in enumerate(
        zip(small_corpus.source, small_corpus.target, strict=True)
    ):
        rows.append((source + FAULTS[k % 7] * (k % 3 == 0), " " if k % 29 == 7 else target))
    return rows + [(f"{source}!", f"{target} {k}") for k, (source, target) in enumerate(rows[::3])]


@pytest.fixture
def folder(rows, tmp_path: Path, monkeypatch) -> Path:
    """A data set as it lies on the hub: the training pairs in three parquet files of many rows."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "pairs"
    folder.mkdir()
    for k, part in enumerate((rows[:31], rows[31:40], rows[40:])):
        write(folder / f"train-{k}.parquet", part)
    write(folder / "validation.parquet", rows[10:21])
    return folder


def write(path: Path, rows: list[tuple[Any, Any]]) -> None:
    table = pa.Table.from_pylist([{"id": 7, "translation": {"de": s, "en": t}} for s, t in rows])
    pq.write_table(table, path, row_group_size=4)


def config(folder: Path | str, **settings: Any) -> DataConfig:
    given: dict[str, Any] = {
        "source_column": "translation.de",
        "target_column": "translation.en",
        "valid_size": 6,
        "test_size": 11,
        "buffer": 1000,
        "streaming": True,
    }
    return DataConfig(name="own", kind="hub", hub_path=str(folder), **(given | settings))


def passed(corpus: Corpus, buffer: int = 13) -> tuple[Pairs, Ledger, int]:
    """What an epoch of a streamed corpus trains on, its ledger, and the pairs held out."""
    stream = corpus.stream
    assert stream is not None
    ledger, held_out, kept = Ledger(), 0, list[tuple[int, str, str]]()
    for block in Share(stream.pairs, buffer=buffer, seed=1).blocks(Start()):
        if block.start.epoch:
            break
        pairs, n = stream.screen(pairs_of(stream.pairs, block.parts), ledger)
        held_out += n
        kept += zip(map(int, pairs.lines), pairs.source, pairs.target, strict=True)
    lines, sources, targets = zip(*sorted(kept), strict=True)
    return Pairs(sources, targets, "", lines), ledger, held_out


def entered(ledger: Ledger) -> Counter[Any]:
    return Counter((e.split, e.file, e.line, e.side, e.reason, e.action) for e in ledger)


@pytest.mark.parametrize("filters", [FilterConfig(), FILTERS], ids=["none", "all"])
@pytest.mark.parametrize("given", [False, True], ids=["held out", "given"])
def test_a_stream_is_treated_like_a_corpus_in_memory(
    folder: Path, rows, filters: FilterConfig, given: bool
) -> None:
    """Where the sample is everything, both must come to the same splits, text and ledger."""
    settings: dict[str, Any] = {"filters": filters, "drop_overlap": given}
    if given:
        settings["valid"] = SplitConfig(split="validation")
    streamed = load_corpus(config(folder, **settings))
    whole = load_corpus(config(folder, streaming=False, **settings))
    for name in ("valid", "test"):
        one, other = getattr(streamed, name), getattr(whole, name)
        assert list(one.source) == list(other.source)
        assert list(one.target) == list(other.target)
    train, ledger, held_out = passed(streamed)
    assert list(train.source) == list(whole.train.source) == list(streamed.train.source)
    assert list(train.target) == list(whole.train.target)
    assert len(rows) == len(train) + held_out + ledger.left_out("train")
    assert held_out == sum(map(len, whole.held_out.values())) or held_out == 17 - 6 * given

    # in memory the three files are one, whose rows are counted on
    before = {1: 0, 2: 31, 3: 40}
    mine = Counter[Any]()
    for (split, file, line, *rest), n in (entered(ledger) + entered(streamed.ledger)).items():
        if ", shard " in file:
            line += before[int(file.split(", shard ")[1][0])]  # noqa: PLW2901
        mine[split, line, *rest] += n
    theirs = Counter((split, line, *rest) for split, _, line, *rest in entered(whole.ledger))
    assert mine == theirs
    assert len(theirs) > (20 if filters.clean else 3)


def test_no_pair_of_the_stream_shares_a_sentence_with_what_was_held_out_of_its_beginning(
    folder: Path,
) -> None:
    corpus = load_corpus(config(folder, buffer=60))
    assert corpus.stream is not None
    assert corpus.stream.sample == 60
    assert [len(split) for split in (corpus.valid, corpus.test)] == [6, 11]
    train, ledger, held_out = passed(corpus)
    assert held_out == 17
    assert overlaps(train, [corpus.valid, corpus.test]) == [{}, {}]
    left_out = {reason for *_, reason, action in entered(ledger) if action == "left out"}
    assert left_out == {"blank side", "sentence also in valid", "sentence also in test"}
    # any block gives the same
    for buffer in (1, 1000):
        other, other_ledger, _ = passed(corpus, buffer)
        assert (other.source, list(other.lines)) == (train.source, list(train.lines))
        assert entered(other_ledger) == entered(ledger)


def test_overlaps_with_a_given_split_are_left_out_only_if_that_is_asked_for(folder: Path) -> None:
    valid = SplitConfig(split="validation")
    found = {}
    for drop in (False, True):
        _, ledger, _ = passed(load_corpus(config(folder, valid=valid, drop_overlap=drop)))
        found[drop] = {
            (file, line): action
            for _, file, line, _, reason, action in entered(ledger)
            if reason == "sentence also in valid"
        }
    assert set(found[False]) == set(found[True])
    assert len(found[True]) >= 11
    assert set(found[False].values()) == {"kept"}
    assert set(found[True].values()) == {"left out"}


def test_the_sample_comes_from_all_shards(folder: Path) -> None:
    corpus = load_corpus(config(folder, buffer=30, valid_size=2, test_size=3))
    lines = np.concatenate([c.lines for c in (corpus.train, corpus.valid, corpus.test)])
    shards = Counter((lines // SHARD).tolist())
    blank = sum(entry.reason == "blank side" for entry in passed(corpus)[1])
    assert 30 - blank <= sum(shards.values()) <= 30
    # the second has nine rows, so that one more of the last is taken
    assert [max(lines[lines // SHARD == k] % SHARD) for k in range(3)] == [10, 9, 11]


def test_a_folder_of_json_lines_with_fields_at_the_top(tmp_path: Path, small_corpus) -> None:
    for k in range(2):
        pairs = list(zip(small_corpus.source, small_corpus.target, strict=True))[66 * k :][:66]
        lines = [json.dumps({"de": s, "en": t}) for s, t in pairs]
        (tmp_path / f"train-{k}.jsonl").write_text("\n".join(lines))
    corpus = load_corpus(config(tmp_path, source_column=None, target_column=None))
    train, _, held_out = passed(corpus)
    assert len(train) + held_out == 132


def test_what_the_data_set_does_not_have(folder: Path, rows) -> None:
    with pytest.raises(DataError, match=r"no field 'fr'; there are id, translation\.de"):
        load_corpus(config(folder, source_column="fr"))
    with pytest.raises(CorpusError, match="cannot load split 'dev'"):
        load_corpus(config(folder, valid=SplitConfig(split="dev")))
    with pytest.raises(ConfigError, match=r"data\.hub_path=NAME"):
        load_corpus(DataConfig(kind="hub", streaming=True))
    broken = [*rows[:20], (None, "nothing to translate"), *rows[20:30]]
    write(folder / "train-2.parquet", broken)
    with pytest.raises(DataError, match=r"\(train\), shard 3 of 3, row 21: field 'transl.*None"):
        load_corpus(config(folder))


def version(folder: Path) -> str:
    stream = load_corpus(config(folder)).stream
    assert stream is not None
    return stream.pairs.version


def test_the_version_follows_the_content_of_the_files(folder: Path, rows) -> None:
    before = version(folder)
    (folder / "train-1.parquet").touch()
    other = folder.rename(folder.with_name("elsewhere"))
    assert version(other) == before
    # as many rows as before, far behind the sample's
    write(other / "train-2.parquet", [*rows[40:-1], ("Ein anderer Satz.", "Another one.")])
    assert version(other) != before


def test_the_version_of_a_data_set_on_the_hub_follows_its_commit(monkeypatch) -> None:
    import datasets

    def builder(path: str, name: str | None, revision: str | None) -> SimpleNamespace:
        files = {"train": [f"hf://datasets/{path}@{revision}/{k}.parquet" for k in range(3)]}
        return SimpleNamespace(config=SimpleNamespace(data_files=files))

    monkeypatch.setattr(datasets, "load_dataset_builder", builder)
    one, same, other = (
        _version(config("somebody/pairs", hub_revision=revision)) for revision in ("a1", "a1", "b2")
    )
    assert one == same != other


def test_a_sample_that_is_too_small_says_which_setting_makes_it_larger(folder: Path) -> None:
    with pytest.raises(DataError, match=r"cannot be held out .* 12 pairs .* larger data\.buffer"):
        load_corpus(config(folder, buffer=12))


def test_a_stream_without_pairs(tmp_path: Path) -> None:
    write(tmp_path / "train.parquet", [("a", "b")])
    schema = pq.read_schema(tmp_path / "train.parquet")
    pq.ParquetWriter(tmp_path / "train.parquet", schema).close()
    with pytest.raises(DataError, match=r"\(train\): there are no pairs in it"):
        load_corpus(config(tmp_path))


def test_a_stream_that_breaks_off_says_where_in_one_sentence(folder: Path, monkeypatch) -> None:
    corpus = load_corpus(config(folder))
    assert corpus.stream is not None
    stream = corpus.stream.pairs
    with monkeypatch.context() as patch:
        patch.setattr("kakehashi.data.corpora.streamed._flat", _breaks_off)
        with pytest.raises(CorpusError, match=r"shard 1 of 3, after row 0: reading broke off"):
            list(stream.tables(0))
    (folder / "train-1.parquet").unlink()
    with pytest.raises(CorpusError, match="can go on once the data set can be read") as caught:
        list(stream.tables(1))
    assert "\n" not in str(caught.value)
    assert "shard 2 of 3" in str(caught.value)


@pytest.mark.parametrize("cut", [slice(-20), slice(0, None, 2)], ids=["truncated", "damaged"])
def test_a_compressed_shard_that_is_not_whole(tmp_path: Path, small_corpus, cut: slice) -> None:
    pairs = zip(small_corpus.source, small_corpus.target, strict=True)
    content = gzip.compress("\n".join(json.dumps({"de": s, "en": t}) for s, t in pairs).encode())
    head = content[:10]
    (tmp_path / "train-0.jsonl.gz").write_bytes(content)
    (tmp_path / "train-1.jsonl.gz").write_bytes(head + content[10:][cut])
    with pytest.raises(
        CorpusError, match=r"shard 2 of 2, after row 0: reading broke off"
    ) as caught:
        load_corpus(config(tmp_path, source_column=None, target_column=None))
    assert "\n" not in str(caught.value)


def _breaks_off(table: pa.Table) -> pa.Table:
    raise ConnectionError("Server Disconnected")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"kind": "files"}, "data.kind is files"),
        ({"kind": "tatoeba"}, "data.kind is tatoeba"),
        ({"kind": "hub", "filters": FilterConfig(duplicates="pair")}, "data.filters.duplicates"),
        ({"kind": "hub", "buffer": 0}, "data.buffer is 0"),
    ],
)
def test_what_does_not_go_with_a_stream(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        DataConfig(streaming=True, **settings)
