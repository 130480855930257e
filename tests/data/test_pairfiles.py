import gzip
import json
import lzma
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from kakehashi.data.pairfiles import read_plain, read_table
from kakehashi.errors import DataError

SOURCE = ["Der Fluss ist breit.", 'Sie sagte "nie".', "NA", "null\u2028 eins"]
TARGET = ["The river is wide.", 'She said "never".', "NA", "null\u2028 one"]


def test_plain_files(tmp_path: Path) -> None:
    (tmp_path / "a.de").write_bytes("\r\n".join(SOURCE).encode())
    (tmp_path / "a.en.gz").write_bytes(gzip.compress("\n".join([*TARGET, ""]).encode()))
    pairs = read_plain(tmp_path / "a.de", tmp_path / "a.en.gz")
    assert (pairs.source, pairs.target, list(pairs.lines)) == (SOURCE, TARGET, [1, 2, 3, 4])


def test_unequal_files_are_refused_with_both_counts(tmp_path: Path) -> None:
    (tmp_path / "a.de").write_text("eins\nzwei\ndrei\n")
    (tmp_path / "a.en").write_text("one\ntwo\n")
    with pytest.raises(DataError, match=r"a\.de has 3 lines and .*a\.en has 2"):
        read_plain(tmp_path / "a.de", tmp_path / "a.en")


def test_no_pairs_is_an_error(tmp_path: Path) -> None:
    for name in ("a.de", "a.en", "a.tsv", "a.jsonl"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(DataError, match="no pairs"):
        read_plain(tmp_path / "a.de", tmp_path / "a.en")
    with pytest.raises(DataError, match="no pairs"):
        read_table(tmp_path / "a.tsv", None, None)
    with pytest.raises(DataError, match="no pairs"):
        read_table(tmp_path / "a.jsonl", "de", "en")


def test_tsv_is_verbatim(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    rows = zip(range(4), TARGET, SOURCE, strict=True)
    path.write_text("".join(f"{i}\t{t}\t{s}\n" for i, t, s in rows), encoding="utf-8")
    pairs = read_table(path, "3", "2")
    assert (pairs.source, pairs.target, list(pairs.lines)) == (SOURCE, TARGET, [1, 2, 3, 4])


def test_tsv_with_a_header_counts_its_lines_from_the_header(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    rows = zip(SOURCE, TARGET, strict=True)
    path.write_text("de\ten\n" + "".join(f"{s}\t{t}\n" for s, t in rows), encoding="utf-8")
    pairs = read_table(path, "de", "en")
    assert (pairs.source, list(pairs.lines)) == (SOURCE, [2, 3, 4, 5])
    with pytest.raises(DataError, match="no column is named 'fr'; there are de, en"):
        read_table(path, "fr", "en")


def test_a_tsv_line_with_too_few_columns_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("a\tb\nc\n")
    with pytest.raises(DataError, match="line 2: 1 column, where line 1 has 2"):
        read_table(path, None, None)
    with pytest.raises(DataError, match="numbered from 1"):
        read_table(path, "0", "1")


def test_json_lines_nested(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = zip(SOURCE, TARGET, strict=True)
    lines = [json.dumps({"translation": {"de": s, "en": t}}) for s, t in rows]
    path.write_text("\n".join([*lines, "", ""]))
    pairs = read_table(path, "translation.de", "translation.en")
    assert (pairs.source, pairs.target) == (SOURCE, TARGET)
    with pytest.raises(DataError, match=r"line 1: no field 'translation.fr'.*de, en"):
        read_table(path, "translation.fr", "translation.en")


@pytest.mark.parametrize("line", ["{", '{"de": 5, "en": "a"}', "", "[1]"])
def test_json_lines_errors_name_the_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.jsonl"
    good = '{"de": "a", "en": "b"}'
    path.write_text(f"{good}\n{line}\n{good}\n")
    with pytest.raises(DataError, match="line 2"):
        read_table(path, "de", "en")


def test_parquet_flat_nested_and_compressed(tmp_path: Path) -> None:
    nested = [{"de": s, "en": t} for s, t in zip(SOURCE, TARGET, strict=True)]
    table = pa.table({"de": SOURCE, "en": TARGET, "n": [2, 3, 5, 7], "translation": nested})
    path = tmp_path / "a.parquet"
    pq.write_table(table, path)
    packings = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.compress}
    packed = [tmp_path / f"a.parquet{suffix}" for suffix in packings]
    for file, pack in zip(packed, packings.values(), strict=True):
        file.write_bytes(pack(path.read_bytes()))
    for file, prefix in ((path, ""), *((file, "translation.") for file in (path, *packed))):
        pairs = read_table(file, f"{prefix}de", f"{prefix}en")
        assert (pairs.source, pairs.target) == (SOURCE, TARGET)
    with pytest.raises(DataError, match="no field 'fr'; there are de, en"):
        read_table(path, "fr", "en")
    with pytest.raises(DataError, match="row 1: field 'n' is 2"):
        read_table(path, "n", "en")


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 but no more than that")
    with pytest.raises(DataError, match="not a parquet file"):
        read_table(path, "de", "en")
    with pytest.raises(DataError, match=r"should end in one of \.tsv"):
        read_table(tmp_path / "a.txt", "de", "en")
    with pytest.raises(DataError, match="which fields"):
        read_table(path, None, None)


def test_bytes_in_parquet_that_are_not_utf_8_are_named_with_their_row(tmp_path: Path) -> None:
    """Nobody checks them when such a file is written."""
    path = tmp_path / "a.parquet"
    source = ["a", "b", "c"]
    target = pa.array([b"a", b"b", "grün".encode("latin-1")], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"de": source, "en": target}), path)
    with pytest.raises(DataError, match=r"a\.parquet, row 3: field 'en' holds byte 0xFC"):
        read_table(path, "de", "en")
