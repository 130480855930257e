"""A search's past against the plainest one there is: a list of pieces for each hypothesis."""

import random

import pytest
import torch
from torch import Tensor

from kakehashi.attention import Memory, Past

LAYERS, H, D_K, D_V = 2, 3, 5, 7
CPU = torch.device("cpu")


def said(past: Past, numbers: list[list[int]]) -> tuple[Past, list[Memory]]:
    """The past after each hypothesis [B K] has said a number, and what each layer remembers."""
    new = torch.tensor(numbers, dtype=torch.float32)[:, None, :, None]
    past = past.extend(len(numbers), len(numbers[0]), CPU)
    memories = []
    for layer in range(LAYERS):
        key = (new + 1000 * layer).expand(-1, H, -1, D_K)
        memories.append(past.remember(layer, key, -key[..., :1].expand(-1, -1, -1, D_V)))
    return past, memories


def own(memory: Memory, sentence: int, hypothesis: int) -> list[int]:
    """The numbers a hypothesis may attend to, in their order."""
    key, value = memory.key[sentence], memory.value[sentence]
    assert (key == key[:1, :, :1]).all()
    assert (value == -key[:, :, :1]).all()
    numbers = key[0, :, 0]
    if memory.allowed is not None:
        numbers = numbers[memory.allowed[sentence, 0, hypothesis] == 0]
    return [int(number) for number in numbers.tolist()]


@pytest.mark.parametrize("seed", range(12))
def test_any_search_is_what_lists_would_hold(seed: int) -> None:
    """60 steps that choose at random, with pasts that part, and sentences that leave."""
    chance = random.Random(seed)
    sentences, k = 4, chance.choice([1, 2, 5])
    narrow = chance.random() < 0.5
    plain: list[list[list[int]]] = [[[] for _ in range(k)] for _ in range(sentences)]
    past, counter = Past.empty(LAYERS), 0
    for _ in range(60):
        numbers = [[counter + i * k + j for j in range(k)] for i in range(sentences)]
        counter += sentences * k
        if chance.random() < 0.2:
            said(past, [[-1] * k for _ in range(sentences)])  # another search goes on from here
        past, memories = said(past, numbers)
        for lists, row in zip(plain, numbers, strict=True):
            for pieces, number in zip(lists, row, strict=True):
                pieces.append(number)
        for layer, memory in enumerate(memories):
            for i in range(sentences):
                for j in range(k):
                    expected = [number + 1000 * layer for number in plain[i][j]]
                    assert own(memory, i, j) == expected
        kept = list(range(sentences))
        if sentences > 1 and chance.random() < 0.05:
            kept.remove(chance.choice(kept))
        new_k = k if chance.random() < 0.8 else chance.choice([1, 2, 5])
        picks = [
            [0 if narrow and chance.random() < 0.8 else chance.randrange(k) for _ in range(new_k)]
            for _ in kept
        ]
        rows = torch.tensor([[i * k + j for j in row] for i, row in zip(kept, picks, strict=True)])
        past = past.select(rows, torch.tensor(kept) if len(kept) < sentences else None)
        plain = [[list(plain[i][j]) for j in row] for i, row in zip(kept, picks, strict=True)]
        sentences, k = len(kept), new_k


def keys(past: Past) -> Tensor:
    assert past.store.key is not None
    return past.store.key


def test_choosing_hypotheses_moves_no_key() -> None:
    past, _ = said(Past.empty(LAYERS), [[1, 2], [3, 4]])
    place = keys(past).data_ptr()
    for number in range(5, 15):
        past = past.select(torch.tensor([[1, 1], [2, 3]]))
        past, _ = said(past, [[number, number], [number, number]])
        assert keys(past).data_ptr() == place


def test_a_greedy_past_has_no_mask_and_is_moved_when_its_room_is_doubled() -> None:
    past, moves = Past.empty(LAYERS), []
    place = 0
    for step in range(70):
        past, memories = said(past, [[step], [step]])
        assert memories[0].allowed is None
        if keys(past).data_ptr() != place:
            place = keys(past).data_ptr()
            moves.append(step)
        past = past.select(torch.tensor([[0], [1]]))
    assert moves == [0, 16, 32, 64]


def test_places_that_nobody_descends_from_are_given_up() -> None:
    """400 steps of 5 hypotheses that all go on from the first: 400 ancestors, not 2,000."""
    past = Past.empty(LAYERS)
    for step in range(400):
        past, memories = said(past, [[step] * 5])
        past = past.select(torch.zeros(1, 5, dtype=torch.int64))
    assert own(memories[0], 0, 3) == list(range(400))
    assert keys(past).shape[3] <= 900


def test_no_gradient_flows_through_the_past_and_it_does_not_change_with_its_source() -> None:
    key = torch.ones(1, H, 1, D_K, requires_grad=True)
    past = Past.empty(1).extend(1, 1, CPU)
    memory = past.remember(0, key, key)
    assert not memory.key.requires_grad
    with torch.no_grad():
        key.zero_()
    assert (memory.key == 1).all()
