"""Heads that look at what is known get the figures that follow from it."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.errors import ConfigError
from kakehashi.insight.pronoun import Rate, halves, judge, pronoun_looks, rules, stays
from kakehashi.insight.pronountable import pronoun_records
from kakehashi.insight.winomt import Question, read_questions
from kakehashi.models.interface import AttentionMaps

JOBS = [("driver", "nurse"), ("cook", "librarian"), ("mover", "clerk"), ("chief", "baker")]
ENDS = ["who was late", "who slept", "who smiled"]


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> list[Question]:
    """Of each pair of jobs twins of both genders; two more that mean the second."""
    lines = []
    for first, second in JOBS:
        start = f"The {first} met the {second}"
        for gender, word in (("male", "he"), ("female", "she")):
            lines.append(f"{gender}\t1\t{start} because {word} had a plan.\t{first}")
            lines.append(f"{gender}\t4\t{start} and {word} ran away.\t{second}")
    lines += [f"male\t4\tThe {a} saw the {b} when he fell.\t{b}" for a, b in JOBS[:2]]
    path = tmp_path_factory.mktemp("who") / "who.tsv"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return read_questions(path).resolved


@pytest.fixture(scope="module")
def tokenizer(small_corpus: Any) -> Tokenizer:
    return Tokenizer.train([*small_corpus.source, *small_corpus.target], vocab_size=401)


def _value(rate: Rate | None) -> float:
    assert rate is not None
    assert rate.low <= rate.value + 1e-9
    assert rate.value <= rate.high + 1e-9
    return rate.value


def test_always_right_is_always_right(questions: list[Question]) -> None:
    verdict = judge(np.ones(len(questions)), questions)
    assert verdict.share == Rate(100, 100, 100, 18)
    assert (_value(verdict.balanced), _value(verdict.twins)) == (100, 100)
    assert verdict.twins is not None
    assert verdict.twins.questions == 8
    assert _value(verdict.stereotyped) == _value(verdict.anti_stereotyped) == 100


def test_places_alone_get_half_of_the_balanced_share_and_no_twins(
    questions: list[Question],
) -> None:
    given = rules(questions)
    for name, share in (("nearest noun", 10 / 18), ("first noun", 8 / 18), ("subject", 8 / 18)):
        verdict = judge(given[name], questions)
        assert _value(verdict.share) == pytest.approx(100 * share)
        assert verdict.balanced == Rate(50, 50, 50, 18)
        assert verdict.twins == Rate(0, 0, 0, 8)


def test_what_a_rule_leaves_open_is_left_out(questions: list[Question]) -> None:
    chosen = np.ones(len(questions))
    chosen[3] = np.nan
    verdict = judge(chosen, questions)
    assert verdict.share == Rate(100, 100, 100, 17)
    assert verdict.twins == Rate(100, 100, 100, 7)
    nothing = judge(np.full(len(questions), np.nan), questions)
    assert (nothing.share, nothing.balanced, nothing.twins) == (None, None, None)


def test_intervals_hold_sentences_with_one_beginning_together(questions: list[Question]) -> None:
    """Choices that differ only between beginnings are worth as many as there are beginnings."""
    frames = sorted({q.frame for q in questions})
    together = judge([float(q.frame in frames[::2]) for q in questions], questions).share
    apart = judge([float(at % 2) for at in range(len(questions))], questions).share
    assert together is not None
    assert apart is not None
    assert together.high - together.low > 2 * (apart.high - apart.low)


def test_no_beginning_is_in_both_halves(questions: list[Question]) -> None:
    half = halves(questions)
    sides = [
        {q.frame for q, mine in zip(questions, half, strict=True) if mine == s} for s in (0, 1)
    ]
    assert not sides[0] & sides[1]
    assert all(sides)


class Engine:
    """Two heads of one layer: at every row the first looks at column 1, the other at random."""

    def __init__(self) -> None:
        self.model = SimpleNamespace(heads=lambda: [SimpleNamespace(attention="encoder")])
        self.seen: list[torch.Tensor] = []

    def maps(self, row: Any, target: Any) -> AttentionMaps:
        n = len(row) + 1
        weights = torch.rand(1, 2, n, n).softmax(-1)
        weights[0, 0] = 0.0
        weights[0, 0, :, 1] = 1.0
        self.seen.append(weights[0])
        return AttentionMaps([], [weights])


def test_weights_are_summed_over_a_name_and_averaged_over_the_pronoun(
    questions: list[Question], tokenizer: Tokenizer
) -> None:
    engine: Any = Engine()
    looks = pronoun_looks(engine, tokenizer, questions, lambda _: None)
    assert looks.labels == ((1, 1), (1, 2), (1, None))
    for at, question in enumerate(questions):
        pieces = tokenizer.pieces(tokenizer.encode(question.text))
        # a mark for a space stands ahead; one that is a piece by itself goes with what follows
        alone = np.array([piece == "▁" for piece in pieces])
        ends = np.cumsum([len(piece) for piece in pieces]) - 1 + alone
        starts = ends - np.maximum(1, [len(piece.strip("▁")) for piece in pieces])
        places = [
            np.flatnonzero((ends > span.start) & (starts < span.end))
            for span in (question.pronoun, question.right, question.wrong)
        ]
        weights = engine.seen[at].numpy()
        for head in (0, 1):
            for side, names in ((looks.right, places[1]), (looks.wrong, places[2])):
                block = weights[head][np.ix_(places[0], names)]
                assert side[head, at] == pytest.approx(block.sum(1).mean(), abs=1e-6)
        assert looks.right[2, at] == pytest.approx(looks.right[:2, at].mean())
        assert (looks.right_pieces[at], looks.wrong_pieces[at]) == (len(places[1]), len(places[2]))


def test_the_table_has_every_head_and_rule_twice_judged(
    questions: list[Question], tokenizer: Tokenizer
) -> None:
    engine: Any = Engine()
    exchanged = [question.exchanged for question in questions]
    looks, swapped = (pronoun_looks(engine, tokenizer, q) for q in (questions, exchanged))
    rows = pronoun_records(questions, looks, exchanged, swapped)
    assert [row["who chooses"] for row in rows if row["sentences"] == "all"] == [
        "layer 1, head 1",
        "layer 1, head 2",
        "layer 1, mean",
        "nearest noun",
        "first noun",
        "subject",
    ]
    assert [row["sentences"] for row in rows].count("other half") == 5
    assert rows[0]["count"] == 18
    assert rows[0]["balanced"] == 50  # column 1 is in the first name, whatever the sentence says
    assert (rows[0]["share"], rows[0]["stays"]) == (pytest.approx(100 * 8 / 18), 100)


def test_stays_compares_both_readings() -> None:
    assert stays([[1, 1, 0, 0]], [[1, 0, 0, 1]]) == pytest.approx([50])


def test_a_recurrent_encoder_has_nothing_to_look_at(
    questions: list[Question], tokenizer: Tokenizer
) -> None:
    engine: Any = Engine()
    engine.model.heads = lambda: [SimpleNamespace(attention="cross")]
    with pytest.raises(ConfigError, match="no self-attention"):
        pronoun_looks(engine, tokenizer, questions)
