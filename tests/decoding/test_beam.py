"""Beam search against brute force, a plain beam, greedy search, and itself in other batches."""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from kakehashi.decoding.beam import beam_search
from kakehashi.decoding.greedy import greedy_search
from kakehashi.decoding.hypothesis import Hypothesis
from kakehashi.models.interface import TranslationModel
from kakehashi.symbols import BOS, EOS, PAD, UNK

SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def encode(model: TranslationModel[Any], first: list[int]) -> Any:
    """One-piece sentences."""
    source = torch.tensor(first).unsqueeze(1)
    return model.encode(source, torch.ones_like(source, dtype=torch.bool))


def search(model: Any, first: list[int], limits: list[int], **options: Any) -> list[Any]:
    arguments = {"beam": 3, "length_penalty": 1.0, "n_best": 1} | options
    return beam_search(model, encode(model, first), max_lengths=torch.tensor(limits), **arguments)


def log_probability(script: Any, sentence: int, pieces: tuple[int, ...]) -> float:
    total = 0.0
    for place, piece in enumerate(pieces):
        logits = torch.tensor(script(sentence, pieces[:place]), dtype=torch.float64)
        total += float(logits.log_softmax(-1)[piece])
    return total


def every_translation(
    script: Any, sentence: int, vocab_size: int, limit: int, penalty: float
) -> list[tuple[float, tuple[int, ...]]]:
    """All finished translations within the limit, best first."""
    found = []
    for length in range(limit):
        for content in product(range(EOS + 1, vocab_size), repeat=length):
            total = log_probability(script, sentence, (*content, EOS))
            found.append((total / (length + 1) ** penalty, content))
    return sorted(found, reverse=True)


@SHARED
@given(
    seed=st.integers(0, 10**6),
    penalty=st.sampled_from([0.0, 0.6, 1.0, 1.7]),
    limits=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    n_best=st.integers(1, 5),
)
def test_a_wide_beam_finds_the_best_of_all_translations(
    scripted: Any, seed: int, penalty: float, limits: list[int], n_best: int
) -> None:
    vocab_size = 7
    model = scripted(seed, vocab_size)
    first = [11 + place for place in range(len(limits))]
    found = search(
        model, first, limits, beam=150, n_best=n_best, length_penalty=penalty, patience=99.0
    )
    for sentence, limit, hypotheses in zip(first, limits, found, strict=True):
        best = every_translation(model.script, sentence, vocab_size, limit, penalty)[:n_best]
        assert [h.ids for h in hypotheses] == [content for _, content in best]
        assert [h.score for h in hypotheses] == pytest.approx([s for s, _ in best], abs=1e-5)
        assert all(h.finished for h in hypotheses)


def plain_beam(
    script: Any, sentence: int, vocab_size: int, limit: int, beam: int, patience: float
) -> tuple[list[tuple[float, tuple[int, ...]]], list[tuple[float, tuple[int, ...]]]]:
    """The docstring's search, one hypothesis at a time and never leaving before it is through.

    Log probability and pieces (EOS among them) of what has finished, and of what had not.
    """
    live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    finished: list[tuple[float, tuple[int, ...]]] = []
    wanted = math.floor(beam * patience + 0.5) if beam > 1 else 1
    for _ in range(limit):
        extended = [
            (total + float(logits[piece]), (*said, piece))
            for total, said in live
            for logits in [torch.tensor(script(sentence, said)).double().log_softmax(-1)]
            for piece in range(EOS, vocab_size)
        ]
        extended.sort(reverse=True)
        finished += [each for each in extended[:beam] if each[1][-1] == EOS]
        live = [each for each in extended if each[1][-1] != EOS][:beam]
        if len(finished) >= wanted:
            break
    return finished, live


@SHARED
@given(
    seed=st.integers(0, 10**6),
    beam=st.integers(1, 6),
    patience=st.sampled_from([1.0, 1.3, 1.5, 2.0, 9.0]),
    penalty=st.sampled_from([0.0, 0.5, 1.0, 1.5]),
    limits=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    n_best=st.integers(1, 4),
    vocab_size=st.sampled_from([5, 8, 11]),
)
def test_equals_the_beam_that_is_written_out(
    scripted: Any,
    seed: int,
    beam: int,
    patience: float,
    penalty: float,
    limits: list[int],
    n_best: int,
    vocab_size: int,
) -> None:
    """Leaving early changes nothing."""
    model = scripted(seed, vocab_size)
    first = [31 + place for place in range(len(limits))]
    n_best = min(n_best, beam)
    found = search(
        model,
        first,
        limits,
        beam=beam,
        patience=patience,
        n_best=n_best,
        length_penalty=penalty,
    )
    for sentence, limit, hypotheses in zip(first, limits, found, strict=True):
        finished, live = plain_beam(model.script, sentence, vocab_size, limit, beam, patience)
        expected = [(t / len(ids) ** penalty, ids) for t, ids in finished or live]
        expected = sorted(expected, reverse=True)[:n_best]
        assert all(h.finished == bool(finished) for h in hypotheses)
        said = [(*h.ids, EOS) if finished else h.ids for h in hypotheses]
        assert said == [ids for _, ids in expected]
        assert [h.score for h in hypotheses] == pytest.approx([s for s, _ in expected], abs=1e-5)


def test_what_ends_leaves_no_place_empty_and_counts_among_the_first_only(scripted: Any) -> None:
    """A beam of 2, by hand. Probabilities of (EOS, 4, 5, 6) after each beginning."""
    after = {
        (): (0.4, 0.3, 0.2, 0.1),
        (4,): (0.1, 0.2, 0.3, 0.4),  # goes on: 0.12, 0.09; its end, 0.03, is beyond the first two
        (5,): (0.28, 0.25, 0.24, 0.23),  # would end with 0.056, and is too late too
        (4, 6): (0.9, 0.04, 0.03, 0.03),
        (4, 5): (0.01, 0.97, 0.01, 0.01),
        (4, 5, 4): (0.99, 0.004, 0.003, 0.003),
    }

    def script(sentence: int, said: tuple[int, ...]) -> list[float]:
        return [-99.0] * 3 + [math.log(p) for p in after.get(said, (0.25,) * 4)]

    def found(patience: float) -> list[Hypothesis]:
        model = scripted(script, 7)
        return search(model, [9], [5], beam=2, n_best=2, patience=patience, length_penalty=1.0)[0]

    assert [h.ids for h in found(1.0)] == [(4, 6), ()]
    assert [h.ids for h in found(1.5)] == [(4, 5, 4), (4, 6)]


@SHARED
@given(
    seed=st.integers(0, 10**6),
    limits=st.lists(st.integers(1, 13), min_size=1, max_size=5),
    patience=st.sampled_from([1.0, 7.0]),
)
def test_a_beam_of_one_is_greedy_search(
    scripted: Any, seed: int, limits: list[int], patience: float
) -> None:
    model = scripted(seed, 13)
    first = list(range(17, 17 + len(limits)))
    greedy = greedy_search(
        model, encode(model, first), max_lengths=torch.tensor(limits), length_penalty=0.7
    )
    one = search(model, first, limits, beam=1, length_penalty=0.7, patience=patience)
    assert one == greedy


def test_a_beam_of_one_is_greedy_search_in_both_models(
    real: TranslationModel[Any], sentences: tuple[Tensor, Tensor]
) -> None:
    encoded = real.encode(*sentences)
    limits = torch.tensor([9, 13, 3, 7, 1, 13, 11])
    ends = set()
    for offset in (-30.0, 0.0, 5.0, 10.0, 30.0):
        real.output.silence[EOS] = offset  # from never the end to always
        greedy = greedy_search(real, encoded, max_lengths=limits, length_penalty=1.0)
        one = beam_search(real, encoded, beam=1, max_lengths=limits, length_penalty=1.0)
        assert one == greedy
        ends |= {h.finished for hypotheses in greedy for h in hypotheses}
    assert ends == {True, False}


def test_greedy_search_without_scores_finds_the_same(
    real: TranslationModel[Any], sentences: tuple[Tensor, Tensor]
) -> None:
    encoded = real.encode(*sentences)
    limits = torch.tensor([9, 13, 3, 7, 1, 13, 11])
    for offset in (-30.0, 5.0):
        real.output.silence[EOS] = offset
        scored = greedy_search(real, encoded, max_lengths=limits, length_penalty=1.0)
        bare = greedy_search(real, encoded, max_lengths=limits, length_penalty=1.0, scored=False)
        for (one,), (other,) in zip(scored, bare, strict=True):
            assert (one.ids, one.finished) == (other.ids, other.finished)
            assert math.isnan(other.score)
            assert math.isnan(other.log_probability)
            assert not math.isnan(one.score)


def close(left: list[Hypothesis], right: list[Hypothesis]) -> bool:
    return [h.ids for h in left] == [h.ids for h in right] and [
        h.score for h in left
    ] == pytest.approx([h.score for h in right], abs=1e-4)


@pytest.mark.parametrize("beam", [1, 4])
def test_neighbours_and_order_change_nothing(
    real: TranslationModel[Any], sentences: tuple[Tensor, Tensor], beam: int
) -> None:
    source, allowed = sentences
    limits = allowed.sum(1) + 5

    def translations(rows: Tensor, width: int) -> list[list[Hypothesis]]:
        encoded = real.encode(source[rows, :width], allowed[rows, :width])
        return beam_search(
            real, encoded, beam=beam, max_lengths=limits[rows], length_penalty=1.0, n_best=beam
        )

    together = translations(torch.arange(7), 11)
    order = torch.tensor([6, 2, 0, 5, 3, 1, 4])
    for place, hypotheses in zip(order.tolist(), translations(order, 11), strict=True):
        assert close(hypotheses, together[place])
    for place in range(7):
        alone = translations(torch.tensor([place]), int(allowed[place].sum()))
        assert close(alone[0], together[place])


def test_log_probability_is_that_of_the_teacher_forced_pass(
    real: TranslationModel[Any], sentences: tuple[Tensor, Tensor]
) -> None:
    source, allowed = sentences
    limits = torch.full((7,), 23)
    real.output.silence[EOS] = 5.0
    found = beam_search(
        real, real.encode(source, allowed), beam=4, max_lengths=limits, length_penalty=0.6, n_best=4
    )
    finished = [(row, h) for row, hypotheses in enumerate(found) for h in hypotheses if h.finished]
    assert len(finished) >= 4
    for row, hypothesis in finished:
        width = int(allowed[row].sum())
        target = torch.tensor([[BOS, *hypothesis.ids]])
        with torch.no_grad():
            logits = real(source[row : row + 1, :width], allowed[row : row + 1, :width], target)
        pieces = torch.tensor([*hypothesis.ids, EOS]).unsqueeze(1)
        total = logits[0].log_softmax(-1).gather(1, pieces).sum()
        assert hypothesis.log_probability == pytest.approx(float(total), abs=1e-4)
        expected = float(total) / (len(hypothesis.ids) + 1) ** 0.6
        assert hypothesis.score == pytest.approx(expected, abs=1e-4)


def test_padding_unknown_and_bos_are_never_said(scripted: Any) -> None:
    def script(sentence: int, said: tuple[int, ...]) -> list[float]:
        return [9.0, 8.0, 7.0, 0.0, 1.0, 0.5, -1.0]

    found = search(scripted(script, 7), [5, 6], [3, 4], beam=4, n_best=4)
    said = {piece for hypotheses in found for h in hypotheses for piece in h.ids}
    assert said
    assert said.isdisjoint({PAD, UNK, BOS, EOS})


def ends_after(lengths: dict[int, int]) -> Callable[[int, tuple[int, ...]], list[float]]:
    """Piece 5 again and again, and EOS when a sentence has its length."""

    def script(sentence: int, said: tuple[int, ...]) -> list[float]:
        ending = len(said) == lengths[sentence]
        return [0.0, 0.0, 0.0, 20.0 if ending else -20.0, 0.0, 0.0 if ending else 20.0, 0.0]

    return script


@pytest.mark.parametrize("beam", [1, 3])
def test_takes_no_step_too_many_and_drops_finished_sentences(scripted: Any, beam: int) -> None:
    model = scripted(ends_after({11: 2, 12: 5, 13: 2}), 7)
    found = search(model, [11, 12, 13], [40, 40, 40], beam=beam)
    assert [h[0].ids for h in found] == [(5, 5), (5,) * 5, (5, 5)]
    assert len(model.journal.rows) == 6
    assert [b for b, _ in model.journal.rows] == [3, 3, 3, 1, 1, 1]
    assert model.journal.moved == [False, False, True, False, False]


def test_the_limit_is_each_sentences_own(scripted: Any) -> None:
    model = scripted(ends_after({11: 99, 12: 99}), 7)
    found = search(model, [11, 12], [3, 5], beam=2, n_best=2, length_penalty=1.0)
    for limit, hypotheses in zip([3, 5], found, strict=True):
        assert hypotheses[0].ids == (5,) * limit
        assert not any(h.finished for h in hypotheses)
        assert hypotheses[0].score == pytest.approx(hypotheses[0].log_probability / limit)
    assert len(model.journal.rows) == 5


def test_a_finished_hypothesis_comes_before_a_better_unfinished_one(scripted: Any) -> None:
    def script(sentence: int, said: tuple[int, ...]) -> list[float]:
        return [0.0, 0.0, 0.0, 1.0, 5.0]

    found = search(scripted(script, 5), [7], [2], beam=3, n_best=3)
    assert [(h.ids, h.finished) for h in found[0]] == [((4,), True), ((), True)]


def test_equals_are_taken_in_the_order_of_the_vocabulary(scripted: Any) -> None:
    def script(sentence: int, said: tuple[int, ...]) -> list[float]:
        return [0.0] * 4 + [1.0] * 900 if not said else [0.0, 0.0, 0.0, 9.0] + [0.0] * 900

    found = search(scripted(script, 904), [7, 8], [3, 3], beam=5, n_best=5)
    for hypotheses in found:
        assert [h.ids for h in hypotheses] == [(4,), (5,), (6,), (7,), (8,)]


@pytest.mark.parametrize(("beam", "n_best"), [(2, 3), (1, 0)])
def test_refuses_an_n_best_list_larger_than_the_beam(scripted: Any, beam: int, n_best: int) -> None:
    with pytest.raises(ValueError, match="n_best"):
        search(scripted(1, 7), [5], [3], beam=beam, n_best=n_best)


def test_refuses_a_length_penalty_that_the_bound_does_not_hold_for(scripted: Any) -> None:
    with pytest.raises(ValueError, match="length_penalty"):
        search(scripted(1, 7), [5], [3], length_penalty=-0.5)


def test_refuses_less_patience_than_a_full_list_takes(scripted: Any) -> None:
    with pytest.raises(ValueError, match="patience"):
        search(scripted(1, 7), [5], [3], patience=0.9)


def test_leaves_no_graph_behind(
    real: TranslationModel[Any], sentences: tuple[Tensor, Tensor]
) -> None:
    encoded = real.encode(*sentences)
    found = beam_search(real, encoded, beam=2, max_lengths=torch.full((7,), 4), length_penalty=1.0)
    assert len(found) == 7
    assert all(parameter.grad is None for parameter in real.parameters())
    assert torch.is_grad_enabled()
