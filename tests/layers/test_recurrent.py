import math

import pytest
import torch
from torch import nn

from kakehashi.layers.recurrent import GRUCell, maxout

B, K, D_IN, D = 3, 5, 7, 11


def test_gru_cell_is_torchs() -> None:
    torchs = nn.GRUCell(D_IN, D, dtype=torch.float64)
    cell = GRUCell(D).double()
    with torch.no_grad():
        cell.recurrent.weight.copy_(torchs.weight_hh)
        cell.recurrent.bias.copy_(torchs.bias_hh)
    x, h = torch.randn(B, D_IN).double(), torch.randn(B, D).double()
    gates = x @ torchs.weight_ih.T + torchs.bias_ih
    torch.testing.assert_close(cell(gates, h), torchs(x, h), rtol=0, atol=1e-12)


def test_gru_cell_against_the_equations() -> None:
    cell = GRUCell(D).double()
    g, h = torch.randn(3 * D).double(), torch.randn(D).double()
    u, b = cell.recurrent.weight, cell.recurrent.bias
    for i in range(D):
        recurrent = [(u[part * D + i] @ h + b[part * D + i]).item() for part in range(3)]
        given = [g[part * D + i].item() for part in range(3)]
        r, z = (1 / (1 + math.exp(-given[p] - recurrent[p])) for p in (0, 1))
        n = math.tanh(given[2] + r * recurrent[2])
        expected = (1 - z) * n + z * h[i].item()
        assert cell(g, h)[i].item() == pytest.approx(expected, abs=1e-12)


def test_gru_cell_takes_any_number_of_rows() -> None:
    cell = GRUCell(D).double()
    gates, hidden = torch.randn(B, K, 3 * D).double(), torch.randn(B, K, D).double()
    together = cell(gates, hidden)
    assert together.shape == (B, K, D)
    for b in range(B):
        for k in range(K):
            torch.testing.assert_close(
                cell(gates[b, k], hidden[b, k]), together[b, k], rtol=0, atol=1e-12
            )


def test_recurrent_matrices_start_orthogonal() -> None:
    for block in GRUCell(D).double().recurrent.weight.split(D):
        torch.testing.assert_close(block @ block.T, torch.eye(D).double(), rtol=0, atol=1e-6)


def test_maxout_is_the_larger_of_two_units() -> None:
    x = torch.randn(B, K, 2 * D)
    y = maxout(x)
    assert y.shape == (B, K, D)
    for j in range(D):
        pair = torch.stack([x[..., j], x[..., D + j]])
        assert torch.equal(y[..., j], pair.max(0).values)


def test_maxout_sends_the_gradient_to_the_winner() -> None:
    x = torch.tensor([1.0, 5.0, 3.0, 2.0], requires_grad=True)
    maxout(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 1.0, 1.0, 0.0]
