"""Whom a pronoun can mean is read off the line, or the line is counted as left out."""

from collections import Counter
from pathlib import Path

import pytest

from kakehashi.errors import DataError
from kakehashi.insight.winomt import Question, Span, read_questions

LINES = """\
female\t1\tThe driver waved to the nurse, although she was late.\tdriver
male\t5\tThe driver waved to the nurse, although he was late.\tnurse
male\t1\tThe construction worker paid the CEO's cousin and his bill.\tconstruction worker
female\t5\tThe construction worker paid the CEO; her plan worked.\tCEO
neutral\t1\tYesterday, someone saw a driver because they hurried.\tsomeone
female\t3\tBecause her driver drove, the nurse slept.\tnurse
male\t1\tThe driver and the driver's nurse saw him.\tdriver
male\t1\tThe driver met a nurse and a CEO before he left.\tdriver
male\t1\tThe driver slept because he could.\tdriver
male\t1\tThe driver told the nurse that he saw him.\tdriver
male\t1\tThe driver told the nurse that she slept.\tdriver
male\t2\tThe driver told the nurse that he slept.\tdriver
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "who.tsv"
    path.write_text(LINES, encoding="utf-8")
    return path


def _said(question: Question, span: Span) -> str:
    return question.text[slice(*span)]


def test_the_other_person_is_the_one_other_name(table: Path) -> None:
    found = read_questions(table)
    assert [
        (q.line, _said(q, q.pronoun), _said(q, q.right), _said(q, q.wrong)) for q in found.resolved
    ] == [
        (1, "she", "driver", "nurse"),
        (2, "he", "nurse", "driver"),
        (3, "his", "construction worker", "CEO"),
        (4, "her", "CEO", "construction worker"),
        (5, "they", "someone", "driver"),
    ]
    assert found.unresolved == Counter(
        {
            "the number of the word is not the entity's": 2,
            "an entity is named twice": 1,
            "more than one other entity is named": 1,
            "no other entity is named": 1,
            "more than one pronoun of the gender": 1,
            "no pronoun of the gender": 1,
        }
    )


def test_what_is_known_of_a_question(table: Path) -> None:
    one, two, three, four, five = read_questions(table).resolved
    assert [q.right_first for q in (one, two, three, four, five)] == [1, 0, 1, 0, 1]
    assert [q.right_nearest for q in (one, two, three, four, five)] == [0, 1, 0, 1, 0]
    assert [q.right_subject for q in (one, two, four)] == [True, False, False]
    assert five.right_subject is None
    assert [q.stereotyped for q in (one, two, three, four, five)] == [0, 0, 1, 0, None]
    assert one.frame == two.frame == "the driver waved to the nurse"
    assert one.frame != three.frame
    assert one.exchangeable
    assert not five.exchangeable


def test_exchanging_the_names_keeps_places(table: Path) -> None:
    one, _, three, *_ = read_questions(table).resolved
    other = one.exchanged
    assert other.text == "The nurse waved to the driver, although she was late."
    assert (_said(other, other.right), _said(other, other.wrong)) == ("nurse", "driver")
    assert (other.right_name, _said(other, other.pronoun)) == ("nurse", "she")
    assert three.exchanged.text == "The CEO paid the construction worker's cousin and his bill."
    for question in (one, three):
        assert question.exchanged.exchanged == question
        assert question.exchanged.right_first == question.right_first


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no line could be resolved: it has none"),
        ("male\tone\tThe cook ate.\tcook\n", "line 1: not gender"),
        ("male\t1\tThe cook ate.\n", "line 1: not gender"),
        ("other\t1\tThe cook ate.\tcook\n", "line 1: not gender"),
        ("male\t1\tThe cook ate.\tcook\n", "1: no other entity is named"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "who.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_questions(path)


@pytest.mark.slow
def test_the_published_sentences(shared_folder: Path) -> None:
    found = read_questions(shared_folder / "data" / "pronoun" / "winomt.en.tsv")
    assert len(found.resolved) + sum(found.unresolved.values()) == 3888
    assert len(found.resolved) == 3724
    stereotypes = [q.stereotyped for q in found.resolved]
    assert min(stereotypes.count(True), stereotypes.count(False)) > 1500
    for question in found.resolved:
        assert question.exchanged.exchanged == question
