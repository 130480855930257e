from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.data.cleaning import STEPS
from kakehashi.data.config import CLEANING_STEPS, DUPLICATES, DataConfig, FilterConfig
from kakehashi.data.filters import PairFilter, filter_pairs
from kakehashi.data.ledger import Ledger
from kakehashi.data.pairs import Pairs
from kakehashi.errors import ConfigError

PAIRS = [
    ("Der Bach ist kalt.", "The brook is cold."),
    ("Der Bach ist kalt.", "The stream is cold."),
    ("Das Wasser ist kalt.", "The brook is cold."),
    ("Der Bach ist kalt.", "The brook is cold."),
    ("Er winkte uns vom anderen Ufer aus zu.", "He waved."),
    ("Radio Oslo", "Radio Oslo"),
    ("Этот ряд на русском языке.", "This row is in Russian."),
    ("12:30", "12.30"),
]


def left_out(pairs: list[tuple[str, str]] = PAIRS, **settings: Any) -> dict[int, tuple[str, str]]:
    """Line to reason and side."""
    ledger = Ledger()
    data = DataConfig(filters=FilterConfig(**settings))
    given = Pairs([s for s, _ in pairs], [t for _, t in pairs], "a.tsv")
    kept = filter_pairs(given, data, "train", ledger)
    found = {e.line: (e.reason, e.side) for e in ledger if e.action == "left out"}
    assert set(found) | set(kept.lines) == set(given.lines)
    return found


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {}),
        ({"max_words": 7}, {5: ("more than 7 words", "source")}),
        ({"max_words": 8}, {}),
        (
            {"max_characters": 19},
            {
                3: ("more than 19 characters", "source"),
                5: ("more than 19 characters", "source"),
                7: ("more than 19 characters", "both"),
            },
        ),
        ({"max_ratio": 4.2}, {5: ("length ratio above 4.2", "both")}),
        ({"max_ratio": 38 / 9}, {}),
        ({"same": True}, {6: ("source equals target", "both")}),
        (
            {"min_script": 0.5},
            {7: ("less than 0.5 of the letters in the language's script", "source")},
        ),
        ({"min_script": 0.5, "source_scripts": ["Latn", "Cyrl"]}, {}),
        ({"duplicates": "pair"}, {4: ("duplicate pair", "both")}),
        (
            {"duplicates": "source"},
            {2: ("duplicate source", "source"), 4: ("duplicate source", "source")},
        ),
        (
            {"duplicates": "target"},
            {3: ("duplicate target", "target"), 4: ("duplicate target", "target")},
        ),
    ],
)
def test_each_filter(settings: dict[str, Any], expected: dict[int, tuple[str, str]]) -> None:
    assert left_out(**settings) == expected


def test_the_first_reason_counts_and_what_is_left_out_is_nobodys_first() -> None:
    pairs = [("lang lang lang", "x"), ("lang lang lang", "long long long"), ("x", "x")]
    found = left_out(pairs, duplicates="source", max_ratio=3, same=True)
    assert found == {1: ("length ratio above 3", "both"), 3: ("source equals target", "both")}


def test_cleaning_comes_first_and_is_entered() -> None:
    ledger = Ledger()
    settings = FilterConfig(clean=["entities", "spaces"], same=True, duplicates="pair")
    chosen = PairFilter(settings, "de", "en", "train", ledger)
    rows = [
        (5, "Q&amp;A ", "Q&A"),
        (7, " a  &gt; b", "b < a"),
        (8, "a > b", "b  <  a"),
        (9, "c", "d"),
    ]
    kept = list(chosen.stream(rows, lambda number: ("x.tsv", number)))
    assert kept == [(7, "a > b", "b < a"), (9, "c", "d")]
    entries = [(e.file, e.line, e.side, e.reason, e.action) for e in ledger]
    assert entries == [
        ("x.tsv", 5, "both", "source equals target", "left out"),
        ("x.tsv", 7, "source", "entities", "changed"),
        ("x.tsv", 7, "source", "spaces", "changed"),
        ("x.tsv", 8, "both", "duplicate pair", "left out"),
    ]


def test_duplicates_are_found_across_files() -> None:
    ledger = Ledger()
    chosen = PairFilter(FilterConfig(duplicates="pair"), "de", "en", "train", ledger)
    shards = {"part-1": [(1, "a", "b"), (2, "c", "d")], "part-2": [(1, "c", "d"), (2, "e", "f")]}
    kept = [
        (name, *row)
        for name, rows in shards.items()
        for row in chosen.stream(rows, lambda line, name=name: (name, line))
    ]
    assert kept == [("part-1", 1, "a", "b"), ("part-1", 2, "c", "d"), ("part-2", 2, "e", "f")]
    assert [(e.file, e.line) for e in ledger] == [("part-2", 1)]


SIDES = st.sampled_from(
    ["", " ", "ja", "ja ", "yes", "&amp;", "да", "犬", "e\u0301", "é", "\x00", "w " * 9, "x" * 30]
)


@given(
    st.lists(st.tuples(SIDES, SIDES), max_size=25),
    st.builds(
        FilterConfig,
        clean=st.lists(st.sampled_from(CLEANING_STEPS), max_size=3),
        max_words=st.none() | st.integers(1, 9),
        max_characters=st.none() | st.integers(1, 30),
        max_ratio=st.none() | st.floats(1, 9),
        same=st.booleans(),
        min_script=st.none() | st.floats(0, 1),
        duplicates=st.sampled_from(DUPLICATES),
    ),
)
def test_what_comes_in_is_kept_or_in_the_ledger(
    rows: list[tuple[str, str]], filters: FilterConfig
) -> None:
    pairs = Pairs([s for s, _ in rows], [t for _, t in rows], "f", range(11, 11 + len(rows)))
    ledger = Ledger()
    kept = filter_pairs(pairs, DataConfig(filters=filters), "train", ledger)
    dropped = [entry.line for entry in ledger if entry.action == "left out"]
    assert sorted([*kept.lines, *dropped]) == list(pairs.lines)
    assert list(kept.lines) == sorted(kept.lines)
    changed = {entry.line for entry in ledger if entry.action == "changed"}
    assert changed <= set(kept.lines)
    for line, source, target in zip(kept.lines, kept.source, kept.target, strict=True):
        expected = rows[line - 11]
        for step in filters.clean:
            expected = (STEPS[step](expected[0]), STEPS[step](expected[1]))
        assert (source, target) == expected
        assert line in changed or expected == rows[line - 11]
    if filters.duplicates == "pair":
        assert len(set(zip(kept.source, kept.target, strict=True))) == len(kept)
    if filters.same:
        assert all(s != t for s, t in zip(kept.source, kept.target, strict=True))
    again = Ledger()
    once_more = FilterConfig(**{**vars(filters), "clean": []})
    assert len(filter_pairs(kept, DataConfig(filters=once_more), "train", again)) == len(kept)


def test_filters_work_where_they_are_told_to() -> None:
    pairs = Pairs(["a", "a"], ["b", "b"])
    both = DataConfig(filters=FilterConfig(duplicates="pair", splits=["train", "valid"]))
    train = DataConfig(filters=FilterConfig(duplicates="pair"))
    assert len(filter_pairs(pairs, both, "valid", Ledger())) == 1
    assert filter_pairs(pairs, train, "valid", Ledger()) is pairs
    assert filter_pairs(pairs, DataConfig(), "train", Ledger()) is pairs


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"splits": ["train", "test"]}, "names test.*never filtered or cleaned"),
        ({"splits": ["dev"]}, "names 'dev'; it can be train, valid"),
        ({"clean": ["lower"]}, "names 'lower'; it can be entities, controls"),
        ({"duplicates": "all"}, "none, pair, source, target"),
        ({"max_ratio": 0.5}, "max_ratio is 0.5; it must be at least 1"),
        ({"max_words": 0}, "max_words is 0"),
        ({"min_script": 1.5}, "from 0 to 1"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        FilterConfig(**settings)


def test_an_unknown_language_needs_its_scripts() -> None:
    settings = FilterConfig(min_script=0.5)
    with pytest.raises(ConfigError, match=r"'tlh' is written in.*target_scripts=\[Latn\]"):
        PairFilter(settings, "de", "tlh", "train", Ledger())
    settings.target_scripts = ["Latn"]
    assert PairFilter(settings, "de", "tlh", "train", Ledger()).active
