"""What the hypotheses of a search have said so far, as memories that their next pieces attend to.

Shapes: L layers, B sentences, K hypotheses of each, H heads, P places, Dk and Dv widths of keys
and values.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from kakehashi.attention.masks import summand
from kakehashi.attention.memory import Memory

ROOM = 16
"""Steps there is room for at first, unless somebody knows better."""


class _Store:
    """Keys and values of all layers, with room for more. Places that are taken never change."""

    def __init__(self, room: int, layers: int) -> None:
        self.room = room
        self.layers = layers
        self.taken = 0
        self.key: Float[Tensor, "L B H P Dk"] | None = None
        self.value: Float[Tensor, "L B H P Dv"] | None = None

    def write(self, layer: int, first: int, key: Tensor, value: Tensor) -> Memory:
        """Put a layer's new pieces from place ``first`` on; all places up to them."""
        if self.key is None or self.value is None:
            self.key, self.value = self._empty(key), self._empty(value)
        end = first + key.shape[2]
        keys, values = self.key[layer], self.value[layer]
        keys[:, :, first:end].copy_(key.detach())
        values[:, :, first:end].copy_(value.detach())
        return Memory(keys[:, :, :end], values[:, :, :end])

    def _empty(self, like: Tensor) -> Tensor:
        sentences, heads, _, width = like.shape
        return like.new_empty(self.layers, sentences, heads, self.room, width)

    def copy(
        self, room: int, length: int, sentences: Tensor | None = None, places: Tensor | None = None
    ) -> "_Store":
        """The first ``length`` places in a store with other room.

        Only those of ``sentences`` where given, or else only the given ``places`` [B P].
        """
        store = _Store(room, self.layers)
        store.taken = length if places is None else places.shape[1]
        if self.key is not None and self.value is not None:
            store.key = _copy(self.key, room, length, sentences, places)
            store.value = _copy(self.value, room, length, sentences, places)
        return store


def _copy(
    old: Tensor, room: int, length: int, sentences: Tensor | None, places: Tensor | None
) -> Tensor:
    layers, rows, heads, _, width = old.shape
    rows = rows if sentences is None else len(sentences)
    new = old.new_empty(layers, rows, heads, room, width)
    old = old[:, :, :, :length]
    if sentences is not None:
        torch.index_select(old, 1, sentences, out=new[:, :, :, :length])
    elif places is not None:
        # A place's numbers stand together: copying them so takes two fifths of the time of gather.
        first = torch.arange(rows * heads, device=old.device).view(rows, heads, 1) * length
        index = (first + places.unsqueeze(1)).flatten()
        for layer in range(layers):
            chosen = old[layer].reshape(-1, width).index_select(0, index)
            new[layer, :, :, : places.shape[1]] = chosen.view(rows, heads, -1, width)
    else:
        new[:, :, :, :length] = old
    return new


@dataclass(frozen=True)
class Past:
    """The pieces of every hypothesis, each kept once, whoever goes on from it.

    The K hypotheses of a sentence are K queries against one memory of all its places, and
    ``ancestors`` says which of them are a hypothesis's own. A search that chooses which hypotheses
    go on thereby rearranges this small table and moves no key and no value. A past is never
    changed: ``extend`` and ``select`` give another one, which shares what is kept with this one.

    Steps are for search: no gradient flows through what is remembered here.
    """

    store: _Store
    ancestors: Bool[Tensor, "B K P"] | None = None
    """None: of each sentence there is one hypothesis, and all places are its own."""
    length: int = 0
    """P, the places taken."""
    new: int = 0
    """The last of them, K: the pieces said at this step, a place for each hypothesis."""
    steps: int = ROOM
    """How many there is room for at first."""

    @classmethod
    def empty(cls, layers: int, steps: int = ROOM) -> "Past":
        """Nothing has been said; about so many steps are to come."""
        return cls(_Store(0, layers), steps=steps)

    def extend(self, sentences: int, hypotheses: int, device: torch.device) -> "Past":
        """The past with a new piece of each hypothesis, to be given by ``remember``."""
        past = self._with_room(hypotheses)
        ancestors = past.ancestors
        if hypotheses > 1 or ancestors is not None:
            own = torch.eye(hypotheses, dtype=torch.bool, device=device)
            own = own.expand(sentences, -1, -1)
            if ancestors is None:
                ancestors = own.new_ones(sentences, hypotheses, past.length)
            ancestors = torch.cat([ancestors, own], dim=2)
        past.store.taken += hypotheses
        length = past.length + hypotheses
        return replace(past, ancestors=ancestors, length=length, new=hypotheses)

    def remember(
        self, layer: int, key: Float[Tensor, "B H K Dk"], value: Float[Tensor, "B H K Dv"]
    ) -> Memory:
        """What the hypotheses may attend to in a layer, their new pieces included."""
        memory = self.store.write(layer, self.length - self.new, key, value)
        if self.ancestors is None:
            return memory
        return replace(memory, allowed=self._summand)

    @cached_property
    def _summand(self) -> Float[Tensor, "B 1 K P"]:
        """The ancestors as a mask, the same for all layers."""
        assert self.ancestors is not None
        assert self.store.key is not None
        return summand(self.ancestors, self.store.key.dtype).unsqueeze(1)

    def select(
        self, rows: Int[Tensor, "b k"], sentences: Int[Tensor, " b"] | None = None
    ) -> "Past":
        """The past of other hypotheses of the same sentences, or of some sentences.

        Args:
            rows: the old hypothesis (sentence * K + number) that each new one goes on from.
            sentences: the old sentences that are kept; None: all, in place.
        """
        hypotheses, ancestors = rows.shape[1], self.ancestors
        if ancestors is not None:
            table = ancestors.flatten(0, 1).index_select(0, rows.flatten())
            ancestors = table.view(*rows.shape, self.length)
        elif hypotheses > 1:
            ancestors = rows.new_ones(*rows.shape, self.length, dtype=torch.bool)
        store = self.store
        if sentences is not None:
            store = store.copy(store.room, self.length, sentences)
        return replace(self, store=store, ancestors=ancestors, new=0)

    def _with_room(self, more: int) -> "Past":
        """This past where the next ``more`` places can be written.

        They cannot where another past has gone on from this one, or where the room has run out.
        Then it is doubled, so that a step costs O(1) copies of a place; unless a third of the
        places have no hypothesis left that descends from them: these are given up first.
        """
        if self.store.taken == self.length and self.length + more <= self.store.room:
            return self
        if self.ancestors is not None:
            used = self.ancestors.any(dim=1)
            most = int(used.sum(dim=1).max())
            if 3 * most <= 2 * self.length:
                return self._reduced(used, most, max(self.steps * more, 2 * most))
        room = max(self.steps * more, 2 * self.length)
        return replace(self, store=self.store.copy(room, self.length))

    def _reduced(self, used: Bool[Tensor, "B P"], most: int, room: int) -> "Past":
        """Only the ``used`` places, in their order: ``most`` where a sentence has most of them.

        (Where it has fewer, places of no use follow.)
        """
        assert self.ancestors is not None
        order = used.to(torch.uint8).sort(dim=1, descending=True, stable=True).indices
        places = order[:, :most]
        index = places.unsqueeze(1).expand(-1, self.ancestors.shape[1], -1)
        store = self.store.copy(room, self.length, places=places)
        return replace(self, store=store, ancestors=self.ancestors.gather(2, index), length=most)
