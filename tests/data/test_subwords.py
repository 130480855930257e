from itertools import pairwise

import numpy as np
import pytest

from kakehashi.data.subwords import Resegmenter, Speller, mixed, sentence_keys, uniform
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.data.trie import NONE, Trie

TEXTS = ["Der Hund schläft {name}.", "", "犬🙂 x", "a", "  Wort  ", "Das Dach des Hauses war rot."]


@pytest.fixture(scope="module")
def tokenizer(small_corpus) -> Tokenizer:
    lines = [*small_corpus.source, *small_corpus.target]
    return Tokenizer.train(lines, vocab_size=443, symbols=["{name}"])


def flat(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    ids = np.array([i for row in rows for i in row], np.int64)
    return ids, np.cumsum([0, *map(len, rows)])


def test_runs_are_the_longest_that_pieces_can_reach_across(tokenizer: Tokenizer) -> None:
    runs = Speller(tokenizer).runs(*flat(tokenizer.encode_batch(TEXTS)))
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    ordinary = [pieces[i] for i in tokenizer.ordinary_pieces()]
    together = {piece[k : k + 2] for piece in ordinary for k in range(len(piece) - 1)}
    expected = []
    for row, text in enumerate(TEXTS):
        characters = tokenizer.pieces(runs.characters[runs.bounds[row] : runs.bounds[row + 1]])
        assert tokenizer.decode(runs.characters[runs.bounds[row] : runs.bounds[row + 1]]) == text
        assert all(len(c) == 1 or c in pieces[:261] for c in characters)
        start = 0
        for k in range(1, len(characters) + 1):
            if k == len(characters) or characters[k - 1] + characters[k] not in together:
                if k - start > 1:
                    expected.append((row, "".join(characters[start:k])))
                start = k
    got = [
        (int(row), "".join(tokenizer.pieces(runs.characters[start : start + length])))
        for row, start, length in zip(runs.rows, runs.starts, runs.lengths, strict=True)
    ]
    assert got == expected
    assert len(got) > 5


def test_groups_hold_every_run_once(tokenizer: Tokenizer, small_corpus) -> None:
    runs = Speller(tokenizer).runs(*flat(tokenizer.encode_batch(small_corpus.source)))
    seen = {}
    for which, characters in runs.groups():
        longest = characters.shape[1]
        for a, row in zip(which.tolist(), characters.tolist(), strict=True):
            assert a not in seen
            assert longest < 2 * runs.lengths[a]
            seen[a] = [i for i in row if i != NONE]
    assert sorted(seen) == list(range(len(runs.starts)))
    for a, (start, length) in enumerate(zip(runs.starts, runs.lengths, strict=True)):
        assert seen[a] == runs.characters[start : start + length].tolist()


class _AsTheyAre:
    """Every run in single characters."""

    def draw(self, runs, lengths, keys):
        return runs.copy()


def test_resegmenting_keeps_text_and_sentences_apart(tokenizer: Tokenizer) -> None:
    ids, offsets = flat(tokenizer.encode_batch(TEXTS))
    resegment = Resegmenter(Speller(tokenizer), _AsTheyAre())
    drawn, bounds = resegment(ids, offsets, sentence_keys(np.arange(len(TEXTS)), 1))
    rows = [drawn[a:b].tolist() for a, b in pairwise(bounds)]
    assert tokenizer.decode_batch(rows) == TEXTS
    assert len(rows[-1]) == len(TEXTS[-1]) + 1


def test_nothing_to_resegment(tokenizer: Tokenizer) -> None:
    resegment = Resegmenter(Speller(tokenizer), _AsTheyAre())
    for rows in ([], [[]], [[], []]):
        drawn, bounds = resegment(*flat(rows), sentence_keys(np.arange(len(rows)), 1))
        assert drawn.tolist() == []
        assert bounds.tolist() == [0] * (len(rows) + 1)


def test_possible_pieces_are_all_that_occur_in_the_text(tokenizer: Tokenizer) -> None:
    texts = ["der Fluss", "{name}🙂"]
    resegment = Resegmenter(Speller(tokenizer), _AsTheyAre())
    possible = resegment.possible(*flat(tokenizer.encode_batch(texts)))
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    ordinary = set(tokenizer.ordinary_pieces())
    expected = {i for i in ordinary if pieces[i] in "▁der▁Fluss ▁"}
    expected |= set(tokenizer.encode("{name}🙂"))
    assert possible.tolist() == sorted(expected)


def test_a_trie_finds_what_a_loop_finds() -> None:
    spelling = {5: [5], 6: [6], 7: [5, 6], 8: [5, 6, 5], 9: [6, 6]}
    texts = np.array([[5, 6, 5, 6, 6], [6, 5, NONE, NONE, NONE]])
    found = Trie(spelling, 10).ending(texts)
    for a, text in enumerate(texts.tolist()):
        for end in range(5):
            for m in range(3):
                part = text[max(0, end - m) : end + 1]
                piece = [p for p, spelt in spelling.items() if spelt == part and end >= m]
                assert found[a, end, m] == (piece or [NONE])[0]


def test_uniform_numbers_are_uniform_and_independent() -> None:
    keys = sentence_keys(np.arange(300), 7, 1, 0)
    numbers = uniform(keys[:, None], np.arange(300)[None, :])
    assert 0 <= numbers.min() < 1e-3 and 1 - 1e-3 < numbers.max() < 1
    counts = np.histogram(numbers, 30, (0, 1))[0]
    # chi square of 29 degrees of freedom: 58.3 is its 99.9 % point
    assert ((counts - 3000) ** 2 / 3000).sum() < 58.3
    for other in (numbers[1:] - 0.5, numbers[:, 1:] - 0.5):
        here = numbers[: len(other), : other.shape[1]] - 0.5
        assert abs((here * other).mean() * 12) < 4 / np.sqrt(other.size)


def test_keys_depend_on_every_number() -> None:
    rows = np.arange(11)
    keys = [sentence_keys(rows, *numbers) for numbers in ((1, 0), (0, 1), (1, 1), (1, 0, 0), (-1,))]
    assert len(np.unique(np.concatenate(keys))) == 55
    assert np.array_equal(sentence_keys(rows[3:7], 1, 0), keys[0][3:7])
    # the first numbers of splitmix64 from 0, as published with it
    states = np.arange(3, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    assert [hex(word) for word in mixed(states).tolist()] == [
        "0xe220a8397b1dcdaf",
        "0x6e789e6aa1b965f4",
        "0x6c45d188009454f",
    ]
