from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.data import texts
from kakehashi.data.pairs import Pairs, Shard
from kakehashi.data.texts import Texts, TextWriter, chunks_of, sizes_of, write_texts
from kakehashi.errors import DataError

ANY = st.lists(st.text(st.characters(), max_size=5), max_size=9)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("texts")


@given(lines=ANY, data=st.data())
def test_they_are_the_list_they_were_written_from(lines: list[str], data, folder: Path) -> None:
    stored = write_texts(folder, "some", lines)
    assert list(stored) == lines and stored == lines and lines == stored
    assert [stored[i] for i in range(-len(lines), len(lines))] == lines + lines
    cut = data.draw(st.slices(len(lines)))
    assert stored[cut] == lines[cut]
    chosen = data.draw(st.lists(st.integers(0, len(lines) - 1), max_size=7)) if lines else []
    taken = stored.take(np.array(chosen, np.int64))
    assert taken == [lines[i] for i in chosen]
    encoded = [text.encode("utf-8", "surrogatepass") for text in taken]
    assert b"".join(taken.chunks()) == b"".join(chunks_of(list(taken))) == b"".join(encoded)
    assert taken.sizes().tolist() == sizes_of(list(taken)).tolist() == [len(e) for e in encoded]


@given(first=ANY, second=ANY)
def test_digests_do_not_depend_on_how_sentences_are_kept(first, second, folder: Path) -> None:
    n = min(len(first), len(second))
    listed = Pairs(first[:n], second[:n])
    stored = Pairs(write_texts(folder, "a", first[:n]), write_texts(folder, "b", second[:n]))
    assert stored.digest() == listed.digest()
    order = list(reversed(range(n)))
    assert stored.select(order).digest() == listed.select(order).digest()


def test_more_than_fits_in_one_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_AT_A_TIME", 7)
    lines = [f"Zeile {k} ❄" * (k % 3) for k in range(61)]
    with TextWriter(tmp_path, "mixed") as writer:
        for line in lines[:10]:
            writer.add(line)
        writer.extend(lines[10:31])
        writer.extend(write_texts(tmp_path, "rest", lines[31:]))
        writer.add("last")
    stored = Texts.load(tmp_path, "mixed")
    assert stored == [*lines, "last"]
    odd = stored.take(np.arange(1, 62, 2))
    assert b"".join(odd.chunks()).decode() == "".join([*lines, "last"][1::2])
    assert stored != lines
    assert stored != "a string"


@pytest.mark.parametrize("damage", ["truncate", "remove", "bounds"])
def test_damage_is_noticed(tmp_path: Path, damage: str) -> None:
    write_texts(tmp_path, "side", ["eins", "zwei"])
    content = tmp_path / "side.utf8"
    match damage:
        case "truncate":
            content.write_bytes(content.read_bytes()[:-1])
        case "remove":
            content.unlink()
        case _:
            np.save(tmp_path / "side.bounds.npy", np.zeros(3, np.int32))
    with pytest.raises(DataError, match="is damaged"):
        Texts.load(tmp_path, "side")


def test_nothing_is_kept_of_what_failed(tmp_path: Path) -> None:
    def lines() -> Iterator[str]:
        yield "eins"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_texts(tmp_path, "half", lines())
    with pytest.raises(DataError, match="is damaged"):
        Texts.load(tmp_path, "half")


def test_lines_are_counted_in_each_file() -> None:
    shards = [Shard("a", 0), Shard("b", 3), Shard("empty", 5), Shard("c", 5)]
    pairs = Pairs(list("stuvw"), list("STUVW"), "all", [1, 3, 4, 5, 6], shards)
    assert [pairs.place(i) for i in range(5)] == [
        ("a", 1),
        ("a", 3),
        ("b", 1),
        ("b", 2),
        ("c", 1),
    ]
    assert pairs.select([4, 2]).place(0) == ("c", 1)
    assert pairs.swapped().place(3) == ("b", 2)
    assert Pairs(["s"], ["t"], "one", [7]).place(0) == ("one", 7)
