import torch

from kakehashi.attention import Attention, Memory, padding_mask

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


def test_a_prepared_memory_is_read_as_it_was_before_and_after_rows_leave() -> None:
    attention = Attention(17, 19, n_heads=1, d_k=11, d_v=None, d_out=None, score="additive")
    query, source = torch.randn(B, 2, 17), torch.randn(B, M, 19)
    allowed = padding_mask(torch.arange(M) < torch.arange(2, B + 2)[:, None])
    with torch.no_grad():
        memory = attention.memory(source, allowed)
        prepared = attention.prepared(memory)
        assert not torch.equal(prepared.key, memory.key)
        expected = attention(query, memory)[0]
        torch.testing.assert_close(attention(query, prepared)[0], expected, rtol=0, atol=1e-6)
        rows = torch.tensor([3, 1])
        chosen = attention(query[rows], prepared.select(rows))[0]
        torch.testing.assert_close(chosen, expected[rows], rtol=0, atol=1e-6)
