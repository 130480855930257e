import torch

from kakehashi.attention import Memory, padding_mask

B, H, M, D_K, D_V = 5, 3, 7, 11, 13


def test_select_of_a_memory_is_indexing() -> None:
    allowed = padding_mask(torch.rand(B, M) < 0.7)
    memory = Memory(torch.randn(B, H, M, D_K), torch.randn(B, H, M, D_V), allowed)
    rows = torch.tensor([4, 0, 4])
    chosen = memory.select(rows)
    assert torch.equal(chosen.key, memory.key[rows])
    assert torch.equal(chosen.value, memory.value[rows])
    assert chosen.allowed is not None
    assert torch.equal(chosen.allowed, allowed[rows])


def test_select_leaves_a_mask_common_to_all_rows_alone() -> None:
    common = torch.rand(1, 1, 1, M) < 0.7
    memory = Memory(torch.randn(B, H, M, D_K), torch.randn(B, H, M, D_V), common)
    assert memory.select(torch.tensor([3, 1])).allowed is common
    bare = Memory(torch.randn(B, H, M, D_K), torch.randn(B, H, M, D_V))
    assert bare.select(torch.tensor([3, 1])).allowed is None
