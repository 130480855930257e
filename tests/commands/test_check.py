"""`kakehashi check`: a corpus audited from the command line."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kakehashi.data.reading import write_lines
from kakehashi.data.tokenizer import Tokenizer


@pytest.fixture
def dirty(small_corpus: Any, tmp_path: Path) -> tuple[Path, Path]:
    """Files of which the target lacks a line, and holds a no-break space and a blank line."""
    target = list(small_corpus.target)
    del target[59]
    target[9] = target[9].replace(" ", "\xa0", 1)
    target[20] = ""
    write_lines(tmp_path / "a.de", small_corpus.source)
    write_lines(tmp_path / "a.en", target)
    return tmp_path / "a.de", tmp_path / "a.en"


def test_a_clean_corpus(kakehashi: Any, small_corpus: Any) -> None:
    ended = kakehashi(
        "check", small_corpus.source_path, small_corpus.target_path, "--strict", "--no-languages"
    )
    assert (ended.status, ended.err) == (0, "")
    said = ended.out.decode()
    assert "train: 132 pairs, de to en" in said
    assert "nothing to remark" in said


def test_findings_with_lines_json_and_page(
    kakehashi: Any, dirty: tuple[Path, Path], tmp_path: Path
) -> None:
    files = ["--json", tmp_path / "out.json", "--html", tmp_path / "out.html"]
    ended = kakehashi("check", *dirty, *files)
    assert (ended.status, ended.err) == (0, "")
    said = ended.out.decode()
    assert "132 lines of source and 131 lines of target" in said
    assert "a line is missing on the target side" in said
    assert "blank target beside a text" in said
    assert "U+00A0 × 1" in said
    record = json.loads((tmp_path / "out.json").read_bytes())
    found = {f["code"]: f for f in record["splits"][0]["findings"]}
    assert found["blank.target"]["lines"] == [21]
    assert found["characters.nbsp"]["lines"] == [10]
    (begins,) = found["alignment.shift"]["lines"]
    assert abs(begins - 60) <= 3
    assert (tmp_path / "out.html").read_text().startswith("<!doctype html>")
    assert kakehashi("check", *dirty, "--strict", "--no-languages").status == 1


def test_a_table_splits_and_a_tokenizer(
    kakehashi: Any, small_corpus: Any, model_folder: Path, tmp_path: Path
) -> None:
    rows = [
        json.dumps({"translation": {"de": s, "en": t}})
        for s, t in zip(small_corpus.source, small_corpus.target, strict=True)
    ]
    write_lines(tmp_path / "train.jsonl", rows)
    write_lines(tmp_path / "test.tsv", ["Der Hund schläft unter dem Tisch.\tA dog.", "猫\t🐈"])
    columns = ["--source-column", "translation.de", "--target-column", "translation.en"]
    words = ["check", tmp_path / "train.jsonl", *columns, "--no-languages"]
    words += ["--source-language", "de", "--target-language", "en", "--tokenizer", model_folder]
    ended = kakehashi(*words, "--json", tmp_path / "out.json")
    assert ended.status == 0
    record = json.loads((tmp_path / "out.json").read_bytes())
    tokenizer = Tokenizer.load(model_folder / "tokenizer.model")

    def in_bytes(character: str) -> bool:
        return any(
            re.match("<0x", piece) for piece in tokenizer.pieces(tokenizer.encode(character))
        )

    sides = (small_corpus.source, small_corpus.target)
    expected = [sum(in_bytes(c) for line in side for c in line) for side in sides]
    assert [s["unknown_characters"] for s in record["splits"][0]["tokenizer"]] == expected
    # Columns of a table hold for all of them, so splits of another form go without.
    plain = ["check", small_corpus.source_path, small_corpus.target_path, "--no-languages"]
    plain += ["--test", tmp_path / "test.tsv", "--tokenizer", model_folder / "tokenizer.model"]
    ended = kakehashi(*plain, "--json", tmp_path / "out.json")
    assert ended.status == 0
    record = json.loads((tmp_path / "out.json").read_bytes())
    assert [split["name"] for split in record["splits"]] == ["train", "test"]
    assert record["splits"][1]["tokenizer"][0]["most_unknown"] == {"猫": 1}
    assert [f["code"] for f in record["overlaps"]] == ["overlap.train.test.source"]
    assert record["splits"][1]["source_language"] == "de"


def test_files_with_wildcards_are_one_corpus(
    kakehashi: Any, small_corpus: Any, tmp_path: Path
) -> None:
    pairs = list(zip(small_corpus.source, small_corpus.target, strict=True))
    pairs[99] = pairs[99][0], ""
    for k, part in enumerate((pairs[:70], pairs[70:])):
        write_lines(tmp_path / f"part-{k}.tsv", ["\t".join(pair) for pair in part])
        write_lines(tmp_path / f"part-{k}.de", [source for source, _ in part])
        write_lines(tmp_path / f"part-{k}.en", [target for _, target in part])
        rows = [json.dumps({"de": source, "en": target}) for source, target in part]
        write_lines(tmp_path / f"part-{k}.jsonl", rows)
    codes = ["--source-language", "de", "--target-language", "en"]
    for files in (
        [tmp_path / "part-*.tsv", *codes],
        [tmp_path / "part-*.jsonl", *codes],
        [tmp_path / "part-*.de", tmp_path / "part-[01].en"],
    ):
        words = ["--test", tmp_path / "part-0.tsv", "--json", tmp_path / "out.json"]
        ended = kakehashi("check", *files, *words, "--no-languages")
        assert (ended.status, ended.err) == (0, "")
        assert "train: 132 pairs, de to en" in ended.out.decode()
        record = json.loads((tmp_path / "out.json").read_bytes())
        (found,) = (f for f in record["splits"][0]["findings"] if f["code"] == "blank.target")
        assert found["lines"] == [100]
        assert any(f["code"] == "overlap.train.test.pairs" for f in record["overlaps"])
    write_lines(tmp_path / "part-1.en", ["One line."])
    ended = kakehashi("check", tmp_path / "part-*.de", tmp_path / "part-*.en")
    assert ended.status == 1
    assert "part-1.de has 62 lines and" in ended.err
    ended = kakehashi("check", tmp_path / "piece-*.tsv")
    assert ended.status == 1
    assert "no file matches" in ended.err


def test_two_files_of_a_split_are_given_by_naming_it_twice(
    kakehashi: Any, small_corpus: Any
) -> None:
    files = [small_corpus.source_path, small_corpus.target_path]
    valid = ["--valid", files[0], "--valid", files[1]]
    ended = kakehashi("check", *files, *valid, "--no-languages")
    assert ended.status == 0
    assert "pairs of valid that also stand in train (132 exactly" in ended.out.decode()
    ended = kakehashi("check", *files, *valid, "--valid", files[0], "--no-languages")
    assert ended.status == 1
    assert "valid: give one file with both sides, or source and target" in ended.err


def test_what_cannot_be_read_is_named_and_nothing_is_written(
    kakehashi: Any, small_corpus: Any, tmp_path: Path
) -> None:
    (tmp_path / "bad.en").write_bytes(b"one\ntwo\nth\xe4\n")
    (tmp_path / "empty.en").write_bytes(b"")
    page = ["--html", tmp_path / "out.html", "--no-languages"]
    for target, message in (
        ("bad.en", "line 3: byte 0xE4 is not UTF-8"),
        ("empty.en", "there are no lines in it"),
        ("none.en", "does not exist"),
    ):
        ended = kakehashi("check", small_corpus.source_path, tmp_path / target, *page)
        assert (ended.status, ended.out) == (1, b"")
        assert message in ended.err
        assert str(tmp_path / target) in ended.err
    ended = kakehashi(
        "check",
        small_corpus.source_path,
        small_corpus.target_path,
        *page[2:],
        "--tokenizer",
        tmp_path,
    )
    assert ended.status == 1
    assert not (tmp_path / "out.html").exists()


def test_the_embedded_corpus_by_its_name(
    kakehashi: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from kakehashi.data.corpora import tatoeba

    rows = [
        ["1", "猫がいます。", "There is a cat.", "-", "Da ist eine Katze.", "-", "-", "-", "-"],
        ["2", "-", "Good night.", "-", "Gute\xa0Nacht.", "-", "-", "-", "-"],
    ]
    write_lines(tmp_path / "sentences.tsv", ["\t".join(row) for row in rows])
    monkeypatch.setattr(tatoeba, "sentences", lambda *_: tmp_path / "sentences.tsv")
    ended = kakehashi("check", "tatoeba", "--no-languages")
    assert ended.status == 0
    assert "train: 2 pairs, de to en, Tatoeba de-en" in ended.out.decode()
    assert "no-break spaces" in ended.out.decode()
    ended = kakehashi("check", "tatoeba", "--source-language", "ja", "--no-languages")
    assert "train: 1 pairs, ja to en" in ended.out.decode()
    assert kakehashi("check", "tatoeba", "--source-language", "xx").status == 1


def test_fields_that_are_not_said_are_asked_for_by_the_options_that_there_are(
    kakehashi: Any, tmp_path: Path
) -> None:
    write_lines(tmp_path / "a.jsonl", ['{"de": "eins", "en": "one"}'])
    ended = kakehashi("check", tmp_path / "a.jsonl", "--target-language", "en")
    assert ended.status == 1
    assert "a.jsonl: say which fields hold the two sides (--source-column and" in ended.err
    assert "data." not in ended.err
    languages = ["--source-language", "de", "--target-language", "en", "--no-languages"]
    assert kakehashi("check", tmp_path / "a.jsonl", *languages).status == 0


def test_a_data_set_of_the_hubs_form_with_all_its_splits(
    kakehashi: Any, small_corpus: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    folder = tmp_path / "hub"
    folder.mkdir()
    rows = [
        json.dumps({"de": source, "en": target}, ensure_ascii=False)
        for source, target in zip(small_corpus.source, small_corpus.target, strict=True)
    ]
    write_lines(folder / "train.jsonl", rows[:100])
    write_lines(folder / "validation.jsonl", [*rows[100:], rows[7]])
    root = ["--root", tmp_path / "data", "--no-languages"]
    languages = ["--source-language", "de", "--target-language", "en"]
    ended = kakehashi("check", f"hub:{folder}", *languages, *root, "--strict")
    said = ended.out.decode()
    assert "train: 100 pairs, de to en" in said
    assert "valid: 33 pairs, de to en" in said
    assert "overlap" in said.lower() or "also in" in said
    assert ended.status == 1
    ended = kakehashi("check", f"hub:{folder}", *root)
    assert ended.status == 1
    assert "say --source-language and --target-language" in ended.err
    ended = kakehashi("check", f"hub:{folder}/none", *languages, *root)
    assert ended.status == 1
    assert "cannot load" in ended.err
