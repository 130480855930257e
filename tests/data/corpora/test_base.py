"""From pairs to a corpus: what is held out, what is left out, and that nothing goes unmentioned."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.data.config import DataConfig, FilterConfig
from kakehashi.data.corpora.base import Corpus, assemble
from kakehashi.data.integrity import normalised
from kakehashi.data.pairs import Pairs

ALL = FilterConfig(
    splits=["train", "valid"],
    clean=["entities", "controls", "spaces", "nfc"],
    max_words=5,
    max_characters=30,
    max_ratio=3,
    same=True,
    min_script=0.5,
    duplicates="target",
)


def pairs_of(rows: list[tuple[str, str]]) -> Pairs:
    return Pairs([s for s, _ in rows], [t for _, t in rows], "all.tsv")


def corpus_of(
    train: Pairs, valid: Pairs | None = None, test: Pairs | None = None, **settings: Any
) -> Corpus:
    return assemble(
        DataConfig(name="own", kind="files", **settings),
        train,
        valid,
        test,
        licence="none",
        attribution="",
        provenance={},
    )


def rows_of(pairs: Pairs) -> list[tuple[str, str]]:
    return list(zip(pairs.source, pairs.target, strict=True))


# Numbered, so that enough can be held out; some with a fault.
FAULTS = ["", " &amp; ", "\u200b", " Слова на русском", " one more word and another", "\x00", "  "]
ROWS = [
    (
        f"Satz {k}{FAULTS[k % 7]}",
        f"Sentence {k - k % 3}{FAULTS[k % 5] if k % 4 else ''}" if k % 11 else " ",
    )
    for k in range(83)
]


@pytest.mark.parametrize("filters", [FilterConfig(), ALL], ids=["none", "all"])
def test_every_pair_that_was_read_is_in_a_split_or_in_the_ledger(filters: FilterConfig) -> None:
    corpus = corpus_of(pairs_of(ROWS), valid_size=7, test_size=9, filters=filters)
    dropped = {split: [] for split in ("train", "valid")}
    for entry in corpus.ledger:
        if entry.action == "left out":
            dropped[entry.split].append(entry.line)
    splits = (corpus.train, corpus.valid, corpus.test)
    lines = [line for part in splits for line in part.lines]
    assert sorted([*lines, *dropped["train"], *dropped["valid"]]) == list(range(1, 84))
    assert corpus.read == {"train": 83}
    assert len(corpus.test) == 9
    assert len(corpus.valid) + len(dropped["valid"]) == 7
    assert corpus.ledger.left_out("train") == len(dropped["train"])
    if filters is ALL:
        reasons = {entry.reason for entry in corpus.ledger}
        assert {"duplicate target", "more than 5 words", "entities", "spaces"} <= reasons


def test_which_pairs_are_tested_does_not_depend_on_the_filters() -> None:
    plain = corpus_of(pairs_of(ROWS), valid_size=7, test_size=9)
    filtered = corpus_of(pairs_of(ROWS), valid_size=7, test_size=9, filters=ALL)
    assert rows_of(filtered.test) == rows_of(plain.test)
    assert any(row != (row[0].strip(), row[1].strip()) for row in rows_of(filtered.test))
    assert set(filtered.train.lines) < set(plain.train.lines)
    assert set(filtered.valid.lines) <= set(plain.valid.lines)


def test_given_splits_are_filtered_where_it_is_said_and_test_never() -> None:
    rows = [("Ja.", "Ja."), ("Nein", ""), ("Der  Bach", "The brook"), ("\x00 x", "x")]
    for splits, valid in ((["train"], rows), (["train", "valid"], [("Der Bach", "The brook")])):
        filters = FilterConfig(splits=splits, same=True, clean=["controls", "spaces"])
        given = pairs_of(rows)
        corpus = corpus_of(pairs_of(ROWS), given, given, filters=filters)
        assert rows_of(corpus.test) == rows
        assert rows_of(corpus.valid) == valid
        assert corpus.read == {"train": 83, "valid": 4, "test": 4}
    said = [str(total) for total in corpus.ledger.totals()]
    assert "test: blank side, kept: 1 pair (line 2)" in said
    assert "test: control character U+0000, kept: 1 pair (line 4)" in said
    assert "valid: source equals target, left out: 2 pairs (lines 1, 4)" in said


WORDS = st.sampled_from(
    ["Tom &amp; Li", "Tom & Li", "tom amp li", "a\u200b\u0301", "á", "...", " ..."]
)


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5), st.booleans())
def test_what_cleaning_makes_equal_to_a_held_out_sentence_leaves_train(
    rows: list[tuple[str, str]], drop: bool
) -> None:
    filters = FilterConfig(clean=["entities", "controls", "spaces"])
    given = pairs_of(rows)
    ordinary = [(f"Satz {k}", f"Sentence {k}") for k in range(9)]
    train = pairs_of([*ordinary, *rows, ("Tom &amp; Li", "á"), (" ...", "x")])
    corpus = corpus_of(train, None, given, valid_size=3, filters=filters, drop_overlap=drop)
    parts = [corpus.train, corpus.valid, *([corpus.test] if drop else [])]
    for i, one in enumerate(parts):
        for other in parts[i + 1 :]:
            assert not set(map(normalised, one.source)) & set(map(normalised, other.source))
            assert not set(map(normalised, one.target)) & set(map(normalised, other.target))
    entered = [(e.line, e.reason) for e in corpus.ledger if e.reason.startswith("sentence also")]
    assert len(entered) == len(set(entered))
    kept = set(corpus.train.lines) | set(corpus.valid.lines)
    left_out = {e.line for e in corpus.ledger if e.action == "left out"}
    assert kept | left_out == set(train.lines) and not kept & left_out
