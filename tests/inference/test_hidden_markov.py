"""Posteriors of the alignment HMM, against all sequences of states one by one."""

from itertools import product

import numpy as np
import pytest

from kakehashi.inference.hidden_markov import EMPTY, REACH, expected_states, first_jumps


def enumerated(
    emission: np.ndarray, empty: np.ndarray, jumps: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """[N, M] posteriors and [J] jumps of one pair without padding."""
    length, width = emission.shape
    posterior, counts, total = np.zeros((length, width)), np.zeros(len(jumps)), 0.0
    for states in product([None, *range(width)], repeat=length):
        weight, at, made = 1.0, -1, []
        for n, state in enumerate(states):
            if state is None:
                weight *= EMPTY * empty[n]
                continue
            near = [max(-REACH, min(REACH, i - at)) + REACH for i in range(width)]
            share = jumps[near[state]] / sum(jumps[each] for each in near)
            weight *= (1 - EMPTY) * share * emission[n, state]
            made.append(near[state])
            at = state
        total += weight
        for n, state in enumerate(states):
            if state is not None:
                posterior[n, state] += weight
        for jump in made:
            counts[jump] += weight
    return posterior / total, counts / total


def test_posteriors_and_jumps_are_those_of_all_sequences() -> None:
    generator = np.random.default_rng(7)
    sizes = [(3, 4), (4, 2), (1, 1), (4, 4)]  # target words, source words
    emission, empty = np.zeros((4, 4, 4)), np.ones((4, 4))
    for pair, (n, m) in enumerate(sizes):
        emission[pair, :n, :m] = generator.random((n, m)) ** 3
        empty[pair, :n] = 0.1 * generator.random(n) + 0.01
    jumps = generator.random(2 * REACH + 1) + 0.01
    targets, sources = np.array(sizes).T
    found = expected_states(emission, empty, sources, targets, jumps)
    counts = np.zeros(len(jumps))
    for pair, (n, m) in enumerate(sizes):
        posterior, made = enumerated(emission[pair, :n, :m], empty[pair, :n], jumps)
        assert found.posterior[pair, :n, :m] == pytest.approx(posterior, abs=1e-12)
        assert found.posterior[pair].sum() == pytest.approx(posterior.sum())  # 0 at padding
        counts += made
    assert found.jumps == pytest.approx(counts, abs=1e-12)


def test_jumps_out_of_reach_count_as_the_furthest() -> None:
    width = REACH + 9
    emission = np.zeros((1, 2, width))
    emission[0, 0, 0] = emission[0, 1, width - 1] = 1.0
    sizes = np.array([width]), np.array([2])
    found = expected_states(emission, np.full((1, 2), 1e-9), *sizes, first_jumps())
    assert found.jumps[[REACH + 1, -1]] == pytest.approx(1, abs=1e-4)


def test_weights_that_vanish_over_a_long_sentence_keep_their_posteriors() -> None:
    emission = np.full((1, 300, 300), 1e-9) + np.eye(300) * 1e-5
    sizes = np.array([300]), np.array([300])
    found = expected_states(emission, np.full((1, 300), 1e-9), *sizes, first_jumps())
    assert (found.posterior[0].argmax(axis=1) == np.arange(300)).all()
    assert np.isfinite(found.posterior).all() and found.posterior.sum() == pytest.approx(300, 0.01)
