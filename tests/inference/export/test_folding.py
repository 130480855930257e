"""Attention with folded queries is the scaled dot product, whatever the score was."""

import math

import pytest
import torch

from kakehashi.attention import Attention
from kakehashi.inference.export.folding import scaled_dot_query


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("score", ["scaled_dot", "dot", "general"])
def test_folded_queries_have_the_same_scores(score: str, bias: bool) -> None:
    attention = Attention(7, 7, n_heads=3, d_k=5, d_v=5, d_out=7, score=score, bias=bias).double()
    x, y = torch.randn(2, 11, 7).double(), torch.randn(2, 13, 7).double()
    heads = [
        t.unflatten(-1, (3, 5)).transpose(1, 2) for t in (attention.query(x), attention.key(y))
    ]
    expected = attention.score(*heads)
    weight, given = scaled_dot_query(attention)
    assert (given is not None) is bias
    query = torch.nn.functional.linear(x, weight, given).unflatten(-1, (3, 5)).transpose(1, 2)
    found = query @ heads[1].transpose(-2, -1) / math.sqrt(5)
    torch.testing.assert_close(found, expected)
