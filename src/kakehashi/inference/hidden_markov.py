"""Which source word each target word comes from, where neighbours come from near each other.

The hidden Markov model of word alignment (Vogel, Ney and Tillmann, 1996, "HMM-Based Word Alignment
in Statistical Translation") with the empty words of Och and Ney (2003). The state is the source
word that a target word comes from. From source word i' the next comes from word i with probability
``(1 - EMPTY) jump(i - i') / sum over the sentence's words k of jump(k - i')``; before the first
target word, i' is -1. With probability EMPTY a target word comes from none, and i' stays.

Shapes: B pairs, N target words, M source words, padded; J = 2 REACH + 1 jumps.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

REACH = 30
"""Jumps further than that count as that far."""
EMPTY = 0.1


class Expected(NamedTuple):
    """What the forward-backward algorithm expects of hidden states."""

    posterior: Floats
    """[B, N, M]: probability that target word n comes from source word m; 0 at padding. What a row
    lacks to 1 is the empty word's."""
    jumps: Floats
    """[J]: how often each jump is expected, -REACH first, over all pairs."""


def first_jumps() -> Floats:
    """[J]: to the next word is the most probable; each word nearer or further takes e^-1/4."""
    away: Floats = np.abs(np.arange(-REACH, REACH + 1) - 1.0)
    return np.exp(-0.25 * away)


def expected_states(
    emission: Floats, empty: Floats, sources: Ints, targets: Ints, jumps: Floats
) -> Expected:
    """Posteriors of the states, and of the jumps between them.

    Args:
        emission: [B, N, M]: weight of target word n if it comes from source word m, 0 at padding.
        empty: [B, N]: if it comes from none; above 0.
        sources: [B]: source words of each pair, at least 1.
        targets: [B]: its target words.
        jumps: [J]: weight of each jump, -REACH first; above 0.
    """
    pairs, length, width = emission.shape
    place = np.clip(np.arange(width) - np.arange(-1, width)[:, None], -REACH, REACH) + REACH
    weight = jumps[place]  # [M + 1, M]: from (-1 first), to
    total = np.cumsum(weight, axis=1)[:, sources - 1].T  # [B, M + 1]
    before = np.zeros((length + 1, pairs, width + 1))  # where the state stands before each word
    before[0, :, 0] = 1.0
    filtered = np.empty((length, pairs, width))
    for n in range(length):
        drawn = (1 - EMPTY) * ((before[n] / total) @ weight) * emission[:, n]
        stays = EMPTY * before[n] * empty[:, n, None]
        scale = drawn.sum(axis=1) + stays.sum(axis=1)
        filtered[n] = drawn / scale[:, None]
        before[n + 1] = stays / scale[:, None]
        before[n + 1, :, 1:] += filtered[n]
    posterior = np.zeros((pairs, length, width))
    moves = np.zeros((width + 1, width))
    after = np.ones((pairs, width + 1))  # what the words that follow weigh, up to a factor
    for n in reversed(range(length)):
        inside = (n < targets)[:, None]
        ends = (before[n + 1] * after).sum(axis=1, keepdims=True)
        posterior[:, n] = np.where(inside, filtered[n] * after[:, 1:] / ends, 0.0)
        drawn = (1 - EMPTY) * emission[:, n] * after[:, 1:]
        stays = EMPTY * empty[:, n, None] * after
        earlier = (drawn @ weight.T) / total + stays
        scale = (before[n] * earlier).sum(axis=1, keepdims=True)
        moves += (np.where(inside, before[n] / (total * scale), 0.0).T @ drawn) * weight
        after = np.where(inside, earlier / scale, after)
    counts = np.bincount(place.ravel(), moves.ravel(), minlength=len(jumps))
    return Expected(posterior, counts.astype(np.float64))
