"""Hashes tell which sentences were in a training text, and nothing else of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.data.integrity import normalised
from kakehashi.data.reading import is_blank
from kakehashi.data.seen import TrainingSentences
from kakehashi.errors import DataError

SENTENCES = st.lists(st.text("ab ?ÄÉ猫", max_size=4), max_size=12)


@given(SENTENCES, SENTENCES, SENTENCES)
def test_finds_what_a_set_of_normalised_sentences_finds(
    sources: list[str], targets: list[str], asked: list[str]
) -> None:
    training = TrainingSentences.of(sources, targets)
    known = {"source": set(map(normalised, sources)), "target": set(map(normalised, targets))}
    assert len(training) == len(known["source"]) + len(known["target"])
    for side in ("source", "target"):
        expected = [
            n
            for n, sentence in enumerate(asked, 1)
            if normalised(sentence) in known[side] and not is_blank(sentence)
        ]
        assert training.lines_in(asked, side) == expected


def test_sides_are_apart_and_spelling_is_not() -> None:
    training = TrainingSentences.of(["Guten Morgen!"], ["Good morning!"])
    assert training.lines_in(["Nacht", "guten  morgen", "Good morning!"], "source") == [2]
    assert training.lines_in(["Guten Morgen!", "ＧＯＯＤ morning"], "target") == [2]


def test_comes_back_from_its_file_in_8_bytes_a_sentence(tmp_path: Path, small_corpus: Any) -> None:
    training = TrainingSentences.of(small_corpus.source, small_corpus.target)
    content = training.to_bytes()
    (tmp_path / "file").write_bytes(content)
    again = TrainingSentences.load(tmp_path / "file")
    assert again.lines_in(small_corpus.source, "source") == list(range(1, 133))
    assert again.lines_in(small_corpus.target, "target") == list(range(1, 133))
    assert again.lines_in(small_corpus.source, "target") == []
    assert again.to_bytes() == content
    assert len(content) < 8 * len(training) + 200
    assert (
        TrainingSentences.of(small_corpus.source[::-1], small_corpus.target).to_bytes() == content
    )


@pytest.mark.parametrize("damage", ["changed", "truncated", "pickled", "without a checksum"])
def test_a_damaged_file_is_refused(tmp_path: Path, damage: str) -> None:
    file = tmp_path / "hashes"
    content = bytearray(TrainingSentences.of(["a", "b"], ["c"]).to_bytes())
    if damage == "changed":
        content[-20] ^= 1
    elif damage == "truncated":
        content = content[:-8]
    elif damage == "pickled":
        np.save(tmp_path / "x.npy", np.array([{}]), allow_pickle=True)
        content = bytearray((tmp_path / "x.npy").read_bytes())
    else:
        import safetensors.numpy

        content = bytearray(safetensors.numpy.save({"hashes": np.arange(3, dtype=np.uint64)}))
    file.write_bytes(content)
    with pytest.raises(DataError, match="hashes is damaged"):
        TrainingSentences.load(file)
