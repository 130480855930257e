"""The taught head: the links of a batch, the loss against them, and where it is read."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from kakehashi.data.batching import FlatCorpus
from kakehashi.models.alignment import AlignmentChoice
from kakehashi.models.build import build_model
from kakehashi.models.config import RNNConfig, TransformerConfig
from kakehashi.models.interface import TranslationModel
from kakehashi.training.alignment_head import AlignmentHead, PieceLinks, taught_choice

PAIRS = [([4, 5, 6], [7, 8]), ([5], [8, 9, 7, 10]), ([6, 4], [9])]
LINKS = [[(0, 0), (2, 0), (1, 1)], [], [(1, 0)]]


def corpus() -> FlatCorpus:
    sides = []
    for side in zip(*PAIRS, strict=True):
        sides += [np.concatenate(side).astype(np.int32), np.cumsum([0, *map(len, side)])]
    return FlatCorpus(*sides)


def piece_links() -> PieceLinks:
    flat = np.array([link for links in LINKS for link in links], np.int32)
    return PieceLinks(np.cumsum([0, *map(len, LINKS)]), flat[:, 0], flat[:, 1])


def model(name: str) -> TranslationModel[Any]:
    torch.manual_seed(2)
    if name == "rnn":
        small = RNNConfig(d_embedding=7, d_hidden=13, d_attention=5, d_maxout=7, dropout=0.0)
        return build_model(small, 11)
    return build_model(TransformerConfig(d_model=24, d_feedforward=29, n_heads=3, dropout=0.0), 11)


def test_links_are_found_by_the_number_of_a_pair_whatever_the_batch() -> None:
    batch = corpus().batch(np.array([2, 0, 1]))
    found = piece_links().alignment(batch)
    want = torch.zeros(3, batch.target_output.shape[1], batch.source.shape[1])
    want[0, 0, 1] = 1.0
    want[1, 0, 0] = want[1, 0, 2] = 0.5
    want[1, 1, 1] = 1.0
    assert torch.equal(found, want)
    empty = corpus().batch(np.array([], np.int64))
    assert not piece_links().alignment(empty).any()


@pytest.mark.parametrize("shift", [0, 1])
def test_the_loss_is_the_surprise_at_each_linked_piece(shift: int) -> None:
    batch = corpus().batch(np.array([0, 1, 2]))
    torch.manual_seed(1)
    shape = (3, 2, batch.target_output.shape[1], batch.source.shape[1])
    cross = [torch.randn(shape).softmax(-1) for _ in range(2)]
    got = AlignmentHead(piece_links(), AlignmentChoice(2, 1, shift), 0.7).loss(cross, batch)
    want = 0.0
    for pair, links in enumerate(LINKS):
        for n in {j for _, j in links}:
            partners = [i for i, j in links if j == n]
            for i in partners:
                weight = float(cross[1][pair, 0, n + shift, i])
                want -= 0.7 * math.log(weight + 1e-6) / len(partners)
    assert float(got) == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("name", ["transformer", "rnn"])
def test_following_it_brings_the_head_to_the_links(name: str) -> None:
    taught = model(name)
    choice = taught_choice(taught)
    assert (choice.head, choice.shift) == ((3, 1) if name == "transformer" else (1, 0))
    head = AlignmentHead(piece_links(), choice, 1.0)
    batch = corpus().batch(np.array([0, 1, 2]))
    optimizer = torch.optim.Adam(taught.parameters(), 0.02)
    losses = []
    for _ in range(20):
        _, cross = taught.attending_features(batch.source, batch.source_allowed, batch.target_input)
        loss = head.loss(cross, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.6 * losses[0]
