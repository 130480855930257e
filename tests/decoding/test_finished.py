"""The finished hypotheses of a batch, step by step."""

import torch

from kakehashi.decoding.finished import Finished


def test_keeps_the_best_and_the_earlier_of_equals() -> None:
    finished = Finished.empty(2, 2, torch.device("cpu"))
    score = torch.tensor([[-3.0, -1.0], [-2.0, -9.0]])
    ids = torch.tensor([[[3], [3]], [[3], [4]]])
    finished.add(score, score, ids, torch.tensor([[True, False], [True, False]]))
    later = torch.tensor([[-3.0, -2.5], [-1.0, -0.5]])
    ids = torch.tensor([[[5, 3], [6, 3]], [[7, 3], [8, 4]]])
    finished.add(2 * later, later, ids, torch.tensor([[True, True], [True, False]]))
    first, second = finished.hypotheses(0), finished.hypotheses(1)
    assert [(h.ids, h.score, h.log_probability) for h in first] == [
        ((6,), -2.5, -5.0),
        ((), -3, -3),
    ]
    assert [(h.ids, h.score, h.log_probability) for h in second] == [((7,), -1, -2), ((), -2, -2)]


def test_sentences_that_go_on_keep_theirs() -> None:
    finished = Finished.empty(3, 1, torch.device("cpu"))
    score = torch.tensor([[-1.0], [-2.0], [-3.0]])
    finished.add(score, score, torch.full((3, 1, 1), 3), torch.tensor([[True], [False], [True]]))
    finished.keep(torch.tensor([1, 2]))
    assert finished.hypotheses(0) == []
    assert [h.score for h in finished.hypotheses(1)] == [-3.0]


def test_counts_those_that_it_does_not_keep_too() -> None:
    finished = Finished.empty(2, 1, torch.device("cpu"))
    score = torch.tensor([[-1.0, -2.0, -3.0], [-4.0, -5.0, -6.0]])
    ended = torch.tensor([[True, True, False], [True, True, True]])
    for steps in (1, 2):
        finished.add(score, score, torch.full((2, 3, steps), 3), ended)
    assert finished.number.tolist() == [4, 6]
    finished.keep(torch.tensor([1]))
    assert finished.number.tolist() == [6]
