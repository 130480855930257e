import copy
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from kakehashi.layers.embedding import PositionalEmbedding, sinusoids

B, N, D, V = 3, 7, 22, 29


def make_embedding(dropout: float = 0.0) -> PositionalEmbedding:
    return PositionalEmbedding(nn.Embedding(V, D), dropout)


@pytest.mark.parametrize(("n", "d_model"), [(1, 2), (7, 22), (131, 10)])
def test_sinusoids_against_the_formula(n: int, d_model: int) -> None:
    table = sinusoids(n, d_model)
    assert table.shape == (n, d_model)
    assert table.dtype == torch.float32
    half = d_model // 2
    for position in range(n):
        for j in range(half):
            angle = position / 10000 ** (2 * j / d_model)
            assert table[position, j].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, half + j].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_sinusoids_far_out_are_still_exact() -> None:
    """Angles are formed in float64: in float32 position 100,003 would be off in the third digit."""
    position, d_model = 100_003, 22
    table = sinusoids(position + 1, d_model, dtype=torch.float64)
    for j in range(d_model // 2):
        angle = position / 10000 ** (2 * j / d_model)
        assert table[position, j].item() == pytest.approx(math.sin(angle), abs=1e-9)


def test_an_embedding_is_scaled_and_placed() -> None:
    embedding = make_embedding()
    tokens = torch.randint(V, (B, N))
    result = embedding(tokens)
    assert result.shape == (B, N, D)
    table, positions = embedding.table.weight, sinusoids(N, D)
    for b in range(B):
        for n in range(N):
            expected = table[tokens[b, n]] * math.sqrt(D) + positions[n]
            torch.testing.assert_close(result[b, n], expected)


@pytest.mark.parametrize("offset", [0, 1, 5, 63, 64, 200])
def test_offset_and_at_continue_a_sequence(offset: int) -> None:
    embedding = make_embedding()
    tokens = torch.randint(V, (B, offset + N))
    whole = embedding(tokens)
    assert torch.equal(embedding(tokens[:, offset:], offset), whole[:, offset:])
    for n in range(offset, offset + N):
        step = embedding.at(tokens[:, n : n + 1], n)
        assert torch.equal(step, whole[:, n : n + 1])


def test_at_puts_all_alternatives_in_one_place() -> None:
    embedding = make_embedding()
    same = embedding.at(torch.full((2, 5), 11), 3)
    assert torch.equal(same, same[:1, :1].expand(2, 5, D))


def test_there_is_no_longest_sequence() -> None:
    embedding = make_embedding()
    tokens = torch.full((1, 1009), 11)
    fresh = make_embedding()
    fresh.table = embedding.table
    short = embedding(tokens[:, :N])
    long = embedding(tokens)
    assert torch.equal(long[:, :N], short)
    assert torch.equal(fresh(tokens), long)
    expected = embedding.table.weight[11] * math.sqrt(D) + sinusoids(1009, D)
    torch.testing.assert_close(long[0], expected)


def test_a_sequence_first_met_in_search_can_be_trained_on_afterwards() -> None:
    embedding = make_embedding()
    tokens = torch.randint(V, (1, 5003))
    with torch.inference_mode():
        searched = embedding(tokens)
    assert not embedding._places(0, 5003).is_inference()
    trained = embedding(tokens)
    trained.square().sum().backward()
    torch.testing.assert_close(searched, trained.detach(), rtol=0, atol=0)
    assert embedding.table.weight.grad is not None


def test_copies_that_saw_other_lengths_are_alike() -> None:
    """Averages and processes copy state from one model to another: it must have one shape."""
    embedding = make_embedding()
    copied = copy.deepcopy(embedding)
    embedding(torch.zeros(1, 300, dtype=torch.long))
    assert not list(embedding.buffers())
    assert list(embedding.state_dict()) == ["table.weight"]
    copied.load_state_dict(embedding.state_dict())


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_positions_have_the_type_of_the_table(dtype: torch.dtype) -> None:
    embedding = make_embedding().to(dtype)
    tokens = torch.randint(V, (B, N))
    result = embedding(tokens)
    assert result.dtype == dtype
    expected = embedding.table.weight[tokens] * math.sqrt(D) + sinusoids(N, D, dtype=dtype)
    torch.testing.assert_close(result, expected)


def test_a_shared_table_is_shared() -> None:
    table = nn.Embedding(V, D)
    source, target = PositionalEmbedding(table, 0.0), PositionalEmbedding(table, 0.0)
    tokens = torch.randint(V, (B, N))
    assert torch.equal(source(tokens), target(tokens))
    (source(tokens).sum() + target(tokens).sum()).backward()
    assert table.weight.grad is not None
    used = F.one_hot(tokens, V).sum((0, 1)).float()
    torch.testing.assert_close(table.weight.grad, (2 * math.sqrt(D) * used)[:, None].expand(V, D))


def test_dropout_falls_on_the_sum() -> None:
    embedding = make_embedding(0.5)
    tokens = torch.randint(V, (B, 101))
    dropped = embedding(tokens)
    whole = embedding.eval()(tokens)
    kept = dropped != 0
    assert 0.4 < kept.float().mean().item() < 0.6
    torch.testing.assert_close(dropped, 2 * whole * kept)
