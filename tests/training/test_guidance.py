"""The guided head: the alignment it is shown, the pull towards it, and how that ends."""

import math

import numpy as np
import pytest
import torch

from kakehashi.models.build import build_model
from kakehashi.models.config import RNNConfig, TransformerConfig
from kakehashi.training.guidance import SHARPNESS, Guide
from kakehashi.training.lexicon import Lexicon, tie_weights

V = 11
LEXICON = Lexicon(
    np.array([4, 4, 5, 6]), np.array([7, 8, 8, 9]), np.array([3.0, 1.0, 2.0, 0.5])
)  # sorted by source, then target, as learn_lexicon gives it


def literal(source: list[int], target: list[int]) -> list[list[float]]:
    """The alignment of one pair without padding, piece by piece."""
    pairs = list(zip(LEXICON.source, LEXICON.target, LEXICON.expected, strict=True))
    rows = []
    for n, t in enumerate(target):
        row = []
        for m, s in enumerate(source):
            count = sum(c for a, b, c in pairs if (a, b) == (s, t))
            of_source = 1 + sum(c for a, _, c in pairs if a == s)
            of_target = 1 + sum(c for _, b, c in pairs if b == t)
            far = abs((n + 0.5) / len(target) - (m + 0.5) / len(source))
            row.append(count / math.sqrt(of_source * of_target) * math.exp(-SHARPNESS * far))
        rows.append([w / sum(row) if sum(row) else 0.0 for w in row])
    return rows


def test_the_alignment_is_the_formula_whatever_the_padding() -> None:
    guide = Guide(LEXICON, V, 1.0, 10)
    pairs = [([4, 5, 6], [8, 7, 9, 10, 8]), ([6, 4], [7, 9, 7])]
    source = torch.tensor([[4, 5, 6], [6, 4, 0]])
    target = torch.tensor([[8, 7, 9, 10, 8], [7, 9, 7, 0, 0]])
    got = guide.alignment(source, target, source != 0, target != 0)
    for row, (s, t) in zip(got, pairs, strict=True):
        want = torch.zeros(5, 3)
        want[: len(t), : len(s)] = torch.tensor(literal(s, t))
        torch.testing.assert_close(row, want, rtol=0, atol=1e-6)


def test_the_pull_falls_in_a_straight_line_to_nothing() -> None:
    guide = Guide(LEXICON, V, 0.3, 50)
    assert [guide.weight(u) for u in (0, 25, 50, 99)] == pytest.approx([0.3, 0.15, 0.0, 0.0])


@pytest.mark.parametrize("name", ["transformer", "rnn"])
def test_following_it_brings_the_first_head_to_the_alignment(name: str) -> None:
    torch.manual_seed(2)
    config = (
        TransformerConfig(d_model=24, d_feedforward=29, n_heads=3, dropout=0.0)
        if name == "transformer"
        else RNNConfig(d_embedding=7, d_hidden=13, d_attention=5, d_maxout=7, dropout=0.0)
    )
    model = build_model(config, V)
    guide = Guide(LEXICON, V, 1.0, 10)
    source, target = torch.tensor([[6, 4, 5]]), torch.tensor([[9, 7, 8]])
    allowed, real = source != 0, target != 0
    entered = torch.tensor([[2, 9, 7]])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    want = guide.alignment(source, target, allowed, real)[0]
    floor = torch.special.entr(want).sum() / 3
    for _ in range(150):
        features, cross = model.attending_features(source, allowed, entered)
        torch.testing.assert_close(features, model.features(source, allowed, entered))
        loss = guide.loss(cross, source, target, allowed, real) / 3  # target pieces
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() / len(cross) == pytest.approx(floor.item(), abs=0.05)
    for weights in cross:
        torch.testing.assert_close(weights[0, 0].detach(), want, rtol=0, atol=0.1)


def test_ties_are_counts_over_the_root_of_both_totals() -> None:
    want = [3 / math.sqrt(5 * 4), 1 / math.sqrt(5 * 4), 2 / math.sqrt(3 * 4), 0.5 / 1.5]
    assert tie_weights(LEXICON, V).tolist() == pytest.approx(want)
