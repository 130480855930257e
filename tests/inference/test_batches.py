"""Windows, batches by length, padded tensors."""

from collections.abc import Iterator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.errors import DataError
from kakehashi.inference.batches import PIECES_A_SENTENCE, length_batches, windows
from kakehashi.inference.torch_engine import source_tensors


@given(lengths=st.lists(st.integers(1, 900), max_size=40), size=st.integers(1, 7))
def test_every_sentence_is_in_one_batch_and_no_batch_is_too_large(
    lengths: list[int], size: int
) -> None:
    batches = list(length_batches(lengths, size))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        longest = max(lengths[index] for index in batch)
        assert len(batch) <= size
        assert len(batch) == 1 or len(batch) * longest <= size * PIECES_A_SENTENCE
    flat = [lengths[index] for batch in batches for index in batch]
    assert flat == sorted(lengths)


def test_short_sentences_fill_their_batches() -> None:
    assert [len(batch) for batch in length_batches([9] * 11, 5)] == [5, 5, 1]


def test_windows_read_no_further_than_asked() -> None:
    source = iter(range(7))
    chunks = windows(source, 3)
    assert next(chunks) == [0, 1, 2]
    assert next(source) == 3
    assert list(chunks) == [[4, 5, 6]]
    assert list(windows([], 3)) == []


def test_items_before_one_that_cannot_be_read_come_first() -> None:
    def items() -> Iterator[int]:
        yield from range(5)
        raise DataError("line 6")

    chunks = windows(items(), 3)
    assert [next(chunks), next(chunks)] == [[0, 1, 2], [3, 4]]
    with pytest.raises(DataError, match="line 6"):
        next(chunks)


def test_rows_end_in_eos_and_only_then_are_padded() -> None:
    source, allowed = source_tensors([[7, 5, 9], [], [4]], torch.device("cpu"))
    assert source.tolist() == [[7, 5, 9, 3], [3, 0, 0, 0], [4, 3, 0, 0]]
    assert allowed.tolist() == [[True] * 4, [True, False, False, False], [True, True, False, False]]
