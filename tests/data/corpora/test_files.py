import gzip
import json
from pathlib import Path

import pytest

from kakehashi.data.config import DataConfig, SplitConfig
from kakehashi.data.corpora import load_corpus
from kakehashi.errors import ConfigError, DataError


@pytest.fixture
def folder(small_corpus, tmp_path: Path, monkeypatch) -> Path:
    """The small corpus in two plain files, in the working folder."""
    (tmp_path / "all.de").write_bytes(small_corpus.source_path.read_bytes())
    (tmp_path / "all.en").write_bytes(small_corpus.target_path.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


ALL = SplitConfig(source="all.de", target="all.en")


def config(**settings) -> DataConfig:
    sizes = {"valid_size": 11, "test_size": 13, "train": ALL}
    return DataConfig(name="own", kind="files", **(sizes | settings))


def test_valid_and_test_are_held_out(folder: Path, small_corpus) -> None:
    corpus = load_corpus(config())
    assert [len(part) for part in (corpus.train, corpus.valid, corpus.test)] == [108, 11, 13]
    parts = (corpus.train, corpus.valid, corpus.test)
    lines = {line: s for part in parts for line, s in zip(part.lines, part.source, strict=True)}
    assert [lines[k] for k in range(1, 133)] == small_corpus.source
    assert corpus.name == "own"
    assert any(value.startswith("sha256 ") for value in corpus.provenance.values())


def test_every_form_gives_the_same_corpus(folder: Path, small_corpus) -> None:
    rows = list(zip(small_corpus.source, small_corpus.target, strict=True))
    tsv = "".join(f"{t}\t{s}\n" for s, t in rows)
    (folder / "all.tsv.gz").write_bytes(gzip.compress(tsv.encode()))
    (folder / "all.csv").write_text("".join(f'"{t}","{s}"\n' for s, t in rows))
    jsonl = "".join(json.dumps({"de": s, "en": t}) + "\n" for s, t in rows)
    (folder / "all.jsonl").write_text(jsonl)
    nested = "".join(json.dumps({"t": {"de": s, "en": t}}) + "\n" for s, t in rows)
    (folder / "nested.jsonl").write_text(nested)
    forms = [
        config(),
        config(train=SplitConfig(path="all.tsv.gz"), source_column="2", target_column="1"),
        config(train=SplitConfig(path="all.csv"), source_column="2", target_column="1"),
        config(train=SplitConfig(path="all.jsonl")),
        config(train=SplitConfig(path="nested.jsonl"), source_column="t.de", target_column="t.en"),
    ]
    assert len({load_corpus(form).test.digest() for form in forms}) == 1


def test_only_what_is_missing_is_held_out(folder: Path) -> None:
    (folder / "dev.de").write_text("Etwas ganz anderes steht hier.\n\n")
    (folder / "dev.en").write_text("Something quite different stands here.\nnothing\n")
    corpus = load_corpus(config(valid=SplitConfig(source="dev.de", target="dev.en")))
    # Given splits stay as they are, blank lines included.
    assert corpus.valid.source == ["Etwas ganz anderes steht hier.", ""]
    assert [len(corpus.train), len(corpus.test)] == [119, 13]


@pytest.mark.parametrize("drop", [False, True])
def test_overlap_with_a_given_test_is_reported(folder, small_corpus, drop: bool, capsys) -> None:
    given = SplitConfig(source="test.de", target="test.en")
    (folder / "test.de").write_text("".join(s + "\n" for s in small_corpus.source[20:70]))
    # Other translations of the same sources are overlap too; case and stops don't matter.
    changed = [t.upper().rstrip(".") for t in small_corpus.target[20:69]] + ["Another one."]
    (folder / "test.en").write_text("".join(t + "\n" for t in changed))
    corpus = load_corpus(config(valid=given, test=given, drop_overlap=drop))
    lines = {entry.line for entry in corpus.ledger if entry.reason.endswith("in valid")}
    assert lines >= set(range(21, 71))
    assert len(corpus.train) == (132 - len(lines) if drop else 132)
    words = f"sentence also in valid, {'left out' if drop else 'kept'}: {len(lines)} pairs"
    assert words in capsys.readouterr().err
    assert len(corpus.test) == 50


def test_blank_sides_are_left_out_of_train(folder: Path, small_corpus, capsys) -> None:
    source = [*small_corpus.source[:7], "  ", *small_corpus.source[8:]]
    target = [*small_corpus.target[:9], "\u200b", *small_corpus.target[10:]]
    (folder / "all.de").write_text("".join(s + "\n" for s in source))
    (folder / "all.en").write_text("".join(t + "\n" for t in target))
    corpus = load_corpus(config(valid_size=0, test_size=0))
    assert [(e.line, e.side) for e in corpus.ledger] == [(8, "source"), (10, "target")]
    assert len(corpus.train) == 130
    assert corpus.train.target[10] == small_corpus.target[12]
    assert "blank side, left out: 2 pairs" in capsys.readouterr().err


def test_nothing_but_blanks_is_an_error(folder: Path) -> None:
    (folder / "all.de").write_text("\n\n")
    (folder / "all.en").write_text("a\n\n")
    with pytest.raises(DataError, match="no pairs are left"):
        load_corpus(config(valid=ALL, test=ALL))


def test_too_small_to_hold_out(folder: Path) -> None:
    with pytest.raises(DataError, match="from 132 pairs 1,000 for valid"):
        load_corpus(config(valid_size=1000, test_size=1000))


def test_settings_that_are_not_for_files(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"data\.train\.source=FILE"):
        load_corpus(config(train=SplitConfig()))
    with pytest.raises(ConfigError, match=r"data\.test\.split names a split on the hub"):
        load_corpus(config(test=SplitConfig(split="test")))


def test_home_folders(folder: Path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    corpus = load_corpus(config(train=SplitConfig(source="~/all.de", target="~/all.en")))
    assert len(corpus.test) == 13
