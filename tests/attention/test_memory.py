import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from kakehashi.attention import Cache, Memory, padding_mask

B, H, M, D_K, D_V = 5, 3, 7, 11, 13


def tokens(n: int, rows: int = B) -> tuple[list[Tensor], list[Tensor]]:
    """Keys and values of n tokens, one tensor a token."""
    keys = [torch.randn(rows, H, 1, D_K) for _ in range(n)]
    values = [torch.randn(rows, H, 1, D_V) for _ in range(n)]
    return keys, values


def filled(keys: list[Tensor], values: list[Tensor]) -> tuple[Cache, Memory]:
    cache = Cache()
    for key, value in zip(keys, values, strict=True):
        memory = cache.append(key, value)
    return cache, memory


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


def test_appending_is_concatenation_at_every_length() -> None:
    """70 tokens: the room is doubled at 16, 32 and 64."""
    keys, values = tokens(70)
    cache = Cache()
    for n, (key, value) in enumerate(zip(keys, values, strict=True), start=1):
        memory = cache.append(key, value)
        assert cache.length == n
        assert torch.equal(memory.key, torch.cat(keys[:n], 2))
        assert torch.equal(memory.value, torch.cat(values[:n], 2))
        assert memory.allowed is None


def test_room_is_doubled_so_that_most_appends_copy_nothing() -> None:
    keys, values = tokens(70)
    cache = Cache()
    places = [cache.append(k, v).key.data_ptr() for k, v in zip(keys, values, strict=True)]
    moves = [n for n in range(1, 70) if places[n] != places[n - 1]]
    assert moves == [16, 32, 64]


@pytest.mark.parametrize("length", [1, 15, 16, 17, 33])
def test_select_of_a_cache_is_indexing_and_goes_on(length: int) -> None:
    keys, values = tokens(length + 3)
    cache, _ = filled(keys[:length], values[:length])
    rows = torch.tensor([1, 1, 4, 0, 2, 3, 1])
    chosen = cache.select(rows)
    for n in range(length, length + 3):
        memory = chosen.append(keys[n][rows], values[n][rows])
        assert torch.equal(memory.key, torch.cat(keys[: n + 1], 2)[rows])
        assert torch.equal(memory.value, torch.cat(values[: n + 1], 2)[rows])


def test_select_of_an_empty_cache_is_an_empty_cache() -> None:
    chosen = Cache().select(torch.tensor([0, 2, 1]))
    assert chosen.length == 0
    keys, values = tokens(1, rows=3)
    assert torch.equal(chosen.append(keys[0], values[0]).key, keys[0])


def test_a_selected_cache_shares_nothing_with_the_old_one() -> None:
    keys, values = tokens(5)
    cache, _ = filled(keys[:3], values[:3])
    identity = torch.arange(B)
    left, right = cache.select(identity), cache.select(identity)
    left.append(keys[3], values[3])
    right_memory = right.append(keys[4], values[4])
    memory = cache.append(-keys[3], -values[3])
    left_memory = left.append(keys[4], values[4])
    assert torch.equal(left_memory.key, torch.cat(keys, 2))
    assert torch.equal(right_memory.key, torch.cat([*keys[:3], keys[4]], 2))
    assert torch.equal(memory.key, torch.cat([*keys[:3], -keys[3]], 2))
    assert torch.equal(left_memory.value, torch.cat(values, 2))
    assert torch.equal(right_memory.value, torch.cat([*values[:3], values[4]], 2))
    assert torch.equal(memory.value, torch.cat([*values[:3], -values[3]], 2))


def test_what_was_remembered_does_not_change_with_the_tensor_it_came_from() -> None:
    keys, values = tokens(2)
    expected = torch.cat(keys, 2)
    _, memory = filled(keys, values)
    for tensor in (*keys, *values):
        tensor.zero_()
    assert torch.equal(memory.key, expected)


def test_no_gradient_flows_through_the_past() -> None:
    keys, values = tokens(2)
    for tensor in (*keys, *values):
        tensor.requires_grad_()
    cache, memory = filled(keys, values)
    chosen = cache.select(torch.tensor([1, 0])).append(keys[0][:2], values[0][:2])
    for tensor in (memory.key, memory.value, chosen.key, chosen.value):
        assert not tensor.requires_grad


@given(data=st.data())
def test_any_sequence_of_appends_and_selects_is_what_lists_would_hold(data: st.DataObject) -> None:
    """Against the plainest cache there is: a list of token numbers for each row."""
    rows = data.draw(st.integers(1, 4))
    plain: list[list[int]] = [[] for _ in range(rows)]
    cache, counter = Cache(), 0
    for select in data.draw(st.lists(st.booleans(), min_size=1, max_size=40)):
        if select:
            picks = data.draw(st.lists(st.integers(0, len(plain) - 1), min_size=1, max_size=4))
            cache = cache.select(torch.tensor(picks))
            plain = [list(plain[pick]) for pick in picks]
            continue
        numbers = [counter + row for row in range(len(plain))]
        counter += len(plain)
        for past, number in zip(plain, numbers, strict=True):
            past.append(number)
        new = torch.tensor(numbers, dtype=torch.float32)[:, None, None, None]
        memory = cache.append(new, -new.expand(-1, -1, -1, 2))
        assert memory.key[:, 0, :, 0].tolist() == plain
        assert (-memory.value[:, 0, :, 1]).tolist() == plain
