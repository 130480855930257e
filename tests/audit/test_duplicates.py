"""Repeated pairs and sentences, against counting with dictionaries."""

from collections import defaultdict
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kakehashi.audit import Text
from kakehashi.audit.duplicates import duplicates
from kakehashi.audit.keys import Keys
from kakehashi.audit.overlap import overlap
from kakehashi.data.integrity import normalised
from kakehashi.data.reading import is_blank

sentences = st.sampled_from(["Ja.", "ja", "JA!", "Nein.", "nein", "Gut", "gut?", "Schön", "", " "])
corpora = st.lists(st.tuples(sentences, sentences), min_size=1, max_size=40)


def _text(pairs: list[tuple[str, str]]) -> Text:
    return Text([s for s, _ in pairs], [t for _, t in pairs], range(1, len(pairs) + 1))


def _groups(keyed: Any) -> list[list[int]]:
    groups = defaultdict(list)
    for key, i in keyed:
        groups[key].append(i)
    return list(groups.values())


@given(corpora)
def test_counts_equal_those_of_dictionaries(pairs: list[tuple[str, str]]) -> None:
    text = _text(pairs)
    found = {f.code: f for f in duplicates(text, Keys.of(text))}
    full = [(p, i) for i, p in enumerate(pairs) if not any(map(is_blank, p))]
    exact = [g for g in _groups(full) if len(g) > 1]
    assert ("duplicates.exact" in found) == bool(exact)
    if exact:
        assert found["duplicates.exact"].count == sum(len(g) - 1 for g in exact)
        first = found["duplicates.exact"].examples[0]
        assert (first.line, first.detail) == (
            exact[0][0] + 1,
            "again in line "
            + ", ".join(str(i + 1) for i in exact[0][1:6])
            + (", ..." if len(exact[0]) > 6 else ""),
        )
    folded = _groups(((normalised(s), normalised(t)), i) for (s, t), i in full)
    further = [g for g in folded if len({pairs[i] for i in g}) > 1]
    assert (found["duplicates.normalised"].count if further else 0) == sum(
        len(g) - 1 for g in further
    )
    for side, name in ((0, "source"), (1, "target")):
        groups = _groups((p[side], i) for p, i in full)
        several = [g for g in groups if len({pairs[i][1 - side] for i in g}) > 1]
        told = found.get(f"duplicates.{name}")
        assert (told.count if told else 0) == len(several)


def test_few_repetitions_are_a_note_and_many_a_warning() -> None:
    pairs = [(f"Satz {i}", f"sentence {i}") for i in range(300)]
    assert list(duplicates(_text(pairs), Keys.of(_text(pairs)))) == []
    for copies, severity in ((1, "note"), (30, "warning")):
        text = _text([*pairs, *pairs[:copies]])
        (finding,) = duplicates(text, Keys.of(text))
        assert (finding.code, finding.severity) == ("duplicates.exact", severity)
        assert (finding.count, finding.lines[0]) == (copies, 301)


@given(corpora, corpora)
def test_overlap_equals_that_of_sets(
    train: list[tuple[str, str]], test: list[tuple[str, str]]
) -> None:
    splits = {"train": _text(train), "test": _text(test)}
    found = {f.code: f for f in overlap(splits, {n: Keys.of(t) for n, t in splits.items()})}
    for side, name in ((0, "source"), (1, "target")):
        known = {normalised(p[side]) for p in train if not is_blank(p[side])}
        shared = [
            i + 1
            for i, p in enumerate(test)
            if not is_blank(p[side]) and normalised(p[side]) in known
        ]
        told = found.get(f"overlap.train.test.{name}")
        assert (list(told.lines) if told else []) == shared[:20]
        assert (told.count if told else 0) == len(shared)
    full = [tuple(map(normalised, p)) for p in train if not any(map(is_blank, p))]
    both = [p for p in test if not any(map(is_blank, p)) and tuple(map(normalised, p)) in full]
    told = found.get("overlap.train.test.pairs")
    assert (told.count if told else 0) == len(both)


def test_an_overlap_names_the_lines_of_both() -> None:
    train = _text([("Eins.", "One."), ("Zwei.", "Two."), ("Drei.", "Three.")])
    test = _text([("Vier.", "Four."), ("Zwei.", "Two."), ("DREI", "Three!")])
    splits = {"train": train, "test": test}
    found = {f.code: f for f in overlap(splits, {n: Keys.of(t) for n, t in splits.items()})}
    pairs = found["overlap.train.test.pairs"]
    assert (pairs.count, pairs.of, pairs.lines, pairs.severity) == (2, 3, (2, 3), "warning")
    assert [(e.line, e.detail) for e in pairs.examples] == [
        (2, "train line 2"),
        (3, "train line 3"),
    ]
    assert "1 exactly" in pairs.title
