"""Masks against matrices drawn by hand: x may attend, . may not."""

import pytest
import torch

from kakehashi.attention import (
    Memory,
    attend,
    causal_mask,
    make_score,
    needed_mask,
    padding_mask,
)


def drawn(*rows: str) -> torch.Tensor:
    return torch.tensor([[mark == "x" for mark in row] for row in rows])


def test_causal_mask() -> None:
    mask = causal_mask(5)
    assert mask.shape == (1, 1, 5, 5)
    assert mask.dtype == torch.bool
    expected = drawn(
        "x....",
        "xx...",
        "xxx..",
        "xxxx.",
        "xxxxx",
    )
    assert torch.equal(mask[0, 0], expected)


@pytest.mark.parametrize("n", [0, 1])
def test_causal_mask_of_next_to_nothing(n: int) -> None:
    assert causal_mask(n).shape == (1, 1, n, n)
    assert causal_mask(n).all()


def test_padding_mask() -> None:
    mask = padding_mask(drawn("xxx", "xx.", "x.."))
    assert mask.shape == (3, 1, 1, 3)
    assert mask.dtype == torch.bool
    assert torch.equal(mask[1].expand(1, 4, 3)[0], drawn("xx.", "xx.", "xx.", "xx."))


def test_causal_and_padding_together() -> None:
    both = causal_mask(4) & padding_mask(drawn("xxxx", "xx.."))
    assert torch.equal(both[0, 0], drawn("x...", "xx..", "xxx.", "xxxx"))
    assert torch.equal(both[1, 0], drawn("x...", "xx..", "xx..", "xx.."))


def test_true_means_may_attend_all_the_way_down() -> None:
    """With one allowed key, the context is the value that stands there."""
    q, k, v = torch.randn(1, 2, 3, 5), torch.randn(1, 2, 7, 5), torch.randn(1, 2, 7, 11)
    allowed = padding_mask(drawn("...x..."))
    for name in ("dot", "scaled_dot", "general", "additive"):
        context, _ = attend(make_score(name, 2, 5), q, k, v, allowed)
        torch.testing.assert_close(context, v[:, :, 3:4].expand(-1, -1, 3, -1))


def test_a_memory_keeps_the_mask_it_was_made_with() -> None:
    key, value = torch.randn(2, 3, 5, 7), torch.randn(2, 3, 5, 11)
    mask = padding_mask(drawn("xxxx.", "xx..."))
    assert Memory(key, value, mask).allowed is mask
    assert Memory(key, value).allowed is None


def test_no_mask_is_needed_without_padding() -> None:
    whole = torch.ones(3, 5, dtype=torch.bool)
    assert needed_mask(whole, torch.float64) is None
    whole[1, 4] = False
    mask = needed_mask(whole, torch.float64)
    assert mask is not None
    assert mask.dtype == torch.float64
    assert torch.equal(mask == 0, padding_mask(whole))
    assert mask[1, 0, 0, 4] == -torch.inf
