"""Training files: every pair stays a pair, or the refusal says which file, line and counts."""

from pathlib import Path

import pytest

from kakehashi.data.config import DataConfig, SplitConfig
from kakehashi.data.corpora import Corpus, load_corpus
from kakehashi.data.reading import read_lines
from kakehashi.errors import DataError


def load(folder: Path, name: str, **settings: object) -> Corpus:
    """The training pairs of two files, nothing held out."""
    train = SplitConfig(source=str(folder / f"{name}.de"), target=str(folder / f"{name}.en"))
    return load_corpus(
        DataConfig(name="case", kind="files", train=train, valid_size=0, test_size=0, **settings)  # type: ignore[arg-type]
    )


def pairs(corpus: Corpus) -> list[tuple[str, str]]:
    return list(zip(corpus.train.source, corpus.train.target, strict=True))


@pytest.mark.parametrize("name", ["separators", "crlf_source_only", "lone_cr", "bom"])
def test_twenty_pairs(cases: Path, name: str) -> None:
    found = pairs(load(cases, name))
    assert len(found) == 20
    for number, (source, target) in enumerate(found, 1):
        assert f" {number} " in f" {target} "
        assert f"{number}" in source or name in ("separators", "lone_cr")
        assert not source.startswith("\ufeff")
        assert not source.endswith("\r")


def test_unequal_files(cases: Path) -> None:
    with pytest.raises(DataError) as error:
        load(cases, "unequal")
    for part in (str(cases / "unequal.de"), str(cases / "unequal.en"), "20", "19"):
        assert part in str(error.value)


def test_a_blank_side_takes_its_pair_with_it(cases: Path) -> None:
    corpus = load(cases, "blank_each_side")
    source, target = (read_lines(cases / f"blank_each_side.{side}") for side in ("de", "en"))
    kept = [i for i in range(20) if i not in (4, 8)]
    assert pairs(corpus) == [(source[i], target[i]) for i in kept]
    assert list(corpus.train.lines) == [i + 1 for i in kept]
    assert corpus.ledger.left_out("train") == 2


def test_bad_bytes(cases: Path) -> None:
    with pytest.raises(DataError, match=r"bad_utf8\.de, line 12"):
        load(cases, "bad_utf8")


def test_a_table_is_verbatim(cases: Path) -> None:
    path = cases / "quotes_and_na.tsv"
    rows = path.read_bytes().decode().split("\n")[:-1]
    corpus = load_corpus(
        DataConfig(
            name="case", kind="files", train=SplitConfig(path=str(path)), valid_size=0, test_size=0
        )
    )
    assert len(rows) == 6
    assert ["\t".join(pair) for pair in pairs(corpus)] == rows


def test_pairs_shared_by_train_and_test_are_reported(
    small_corpus: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = {}
    for side in ("source", "target"):
        lines = getattr(small_corpus, side)
        for split, part in (("train", lines), ("test", [line.upper() for line in lines[40:90]])):
            sides[split, side] = tmp_path / f"{split}.{side}"
            sides[split, side].write_text("".join(f"{line}\n" for line in part), encoding="utf-8")

    def corpus(drop: bool) -> Corpus:
        train, test = (
            SplitConfig(source=str(sides[s, "source"]), target=str(sides[s, "target"]))
            for s in ("train", "test")
        )
        return load_corpus(
            DataConfig(
                name="case",
                kind="files",
                train=train,
                test=test,
                valid_size=0,
                drop_overlap=drop,
            )
        )

    assert len(corpus(drop=False).train) == 132
    said = capsys.readouterr().err
    assert "50 " in said
    assert "test" in said
    dropped = corpus(drop=True)
    assert len(dropped.train) == 82
    assert dropped.ledger.left_out("train") == 50
