"""What is attended to: keys and values, projected once and handed in, never kept on a module.

Shapes: B sentences, H heads, M remembered tokens, Dk and Dv widths of keys and values.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Memory:
    """Keys and values of a sequence, and which of its places may be attended to."""

    key: Float[Tensor, "B H M Dk"]
    value: Float[Tensor, "B H M Dv"]
    allowed: Bool[Tensor, "#B 1 #N M"] | None = None
    """True = may be attended to; None allows all."""

    def select(self, rows: Int[Tensor, " b"]) -> "Memory":
        """The memory of the given rows, in their order."""
        allowed = self.allowed
        if allowed is not None and allowed.shape[0] == self.key.shape[0]:
            allowed = allowed.index_select(0, rows)
        return Memory(self.key.index_select(0, rows), self.value.index_select(0, rows), allowed)


class Cache:
    """A memory that grows by one token a step, in place: the decoder's own past.

    Rows are hypotheses. Room is doubled when it runs out, so that appending costs O(1) a token.
    Steps are for search: no gradient flows through what is remembered here.
    """

    def __init__(self) -> None:
        self.length = 0
        self._key: Tensor | None = None
        self._value: Tensor | None = None

    def append(self, key: Float[Tensor, "R H 1 Dk"], value: Float[Tensor, "R H 1 Dv"]) -> Memory:
        """Remember one more token of each row; returns the whole past including it."""
        self._key = _with_room(self._key, key, self.length)
        self._value = _with_room(self._value, value, self.length)
        self._key[:, :, self.length] = key[:, :, 0].detach()
        self._value[:, :, self.length] = value[:, :, 0].detach()
        self.length += 1
        return Memory(self._key[:, :, : self.length], self._value[:, :, : self.length])

    def select(self, rows: Int[Tensor, " r"]) -> "Cache":
        """A cache whose row i is this one's row ``rows[i]``."""
        chosen = Cache()
        chosen.length = self.length
        if self._key is not None and self._value is not None:
            chosen._key = _select_rows(self._key, rows, self.length)
            chosen._value = _select_rows(self._value, rows, self.length)
        return chosen


def _with_room(store: Tensor | None, new: Tensor, length: int) -> Tensor:
    if store is not None and length < store.shape[2]:
        return store
    rows, heads, _, width = new.shape
    larger = new.new_empty(rows, heads, max(16, 2 * length), width)
    if store is not None:
        larger[:, :, :length] = store
    return larger


def _select_rows(store: Tensor, rows: Tensor, length: int) -> Tensor:
    chosen = store.new_empty(rows.shape[0], *store.shape[1:])
    torch.index_select(store[:, :, :length], 0, rows, out=chosen[:, :, :length])
    return chosen
