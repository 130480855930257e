import numpy as np
import pytest

from kakehashi.data import tokenised
from kakehashi.data.pairs import Pairs
from kakehashi.data.tokenised import cached, tokenise
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.errors import DataError


@pytest.fixture(scope="module")
def tokenizer(small_corpus) -> Tokenizer:
    return Tokenizer.train([*small_corpus.source, *small_corpus.target], vocab_size=401)


@pytest.fixture
def pairs(small_corpus) -> Pairs:
    return Pairs([*small_corpus.source, ""], [*small_corpus.target, "犬 "])


def test_pieces_of_each_pair(pairs: Pairs, tokenizer: Tokenizer, monkeypatch) -> None:
    monkeypatch.setattr(tokenised, "_LINES_AT_A_TIME", 17)
    corpus = tokenise(pairs, tokenizer)
    assert len(corpus) == 133
    for k in (0, 16, 17, 131, 132):
        source = corpus.source_ids[corpus.source_offsets[k] : corpus.source_offsets[k + 1]]
        target = corpus.target_ids[corpus.target_offsets[k] : corpus.target_offsets[k + 1]]
        assert source.tolist() == tokenizer.encode(pairs.source[k])
        assert target.tolist() == tokenizer.encode(pairs.target[k])


def test_made_once_and_found_again(pairs, tokenizer, tmp_path, monkeypatch) -> None:
    first = cached(pairs, tokenizer, tmp_path)
    monkeypatch.setattr(tokenised, "_write", None)  # a second making would fail
    second = cached(pairs, tokenizer, tmp_path)
    expected = tokenise(pairs, tokenizer)
    for corpus in (first, second):
        assert isinstance(corpus.source_ids, np.memmap)
        for name in ("source_ids", "source_offsets", "target_ids", "target_offsets"):
            assert np.array_equal(getattr(corpus, name), getattr(expected, name))
    assert [p.name[0] for p in (tmp_path / "cache").iterdir()] != ["."]
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_other_text_or_tokenizer_is_another_entry(pairs, tokenizer, tmp_path) -> None:
    cached(pairs, tokenizer, tmp_path)
    cached(pairs.swapped(), tokenizer, tmp_path)
    cached(pairs, Tokenizer.train(pairs.source, vocab_size=331), tmp_path)
    assert len(list((tmp_path / "cache").iterdir())) == 3


@pytest.mark.parametrize("damage", ["truncate", "remove", "swap"])
def test_damage_is_noticed_and_the_folder_named(pairs, tokenizer, tmp_path, damage) -> None:
    cached(pairs, tokenizer, tmp_path)
    (folder,) = (tmp_path / "cache").iterdir()
    array = folder / "source.ids"
    match damage:
        case "truncate":
            array.write_bytes(array.read_bytes()[:-40])
        case "remove":
            array.unlink()
        case _:
            (folder / "target.ids").rename(array)
            (folder / "target.ids").write_bytes(bytes(20))
    with pytest.raises(DataError, match=f"{folder.name} is damaged"):
        cached(pairs, tokenizer, tmp_path)


def test_a_folder_that_cannot_be_written_is_named(pairs, tokenizer, tmp_path) -> None:
    (tmp_path / "root").write_text("a file")
    with pytest.raises(DataError, match="cannot write"):
        cached(pairs, tokenizer, tmp_path / "root")


def test_an_empty_split(tokenizer, tmp_path) -> None:
    corpus = cached(Pairs([], []), tokenizer, tmp_path)
    assert len(corpus) == 0
