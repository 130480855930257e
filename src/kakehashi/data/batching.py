"""Token-budget batches: which pairs go together, and the padded tensors they become.

B rows, M source pieces with EOS, N target pieces with EOS.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from kakehashi.data.position import EpochPosition
from kakehashi.errors import DataError
from kakehashi.symbols import BOS, EOS, PAD

Lengths = npt.NDArray[np.int64]


@dataclass
class Batch:
    """Padded pairs: `source` is pieces EOS PAD…, `target` is BOS pieces EOS PAD…, L = N + 1."""

    source: Int[Tensor, "B M"]
    target: Int[Tensor, "B L"]
    index: Int[Tensor, " B"]
    """Where in the split each row stands; -1 for a row without a pair (see `FlatCorpus.batch`)."""

    @property
    def source_allowed(self) -> Bool[Tensor, "B M"]:
        """True = a real piece."""
        return self.source != PAD

    @property
    def target_input(self) -> Int[Tensor, "B N"]:
        """What the decoder reads: BOS, then the pieces."""
        return self.target[:, :-1]

    @property
    def target_output(self) -> Int[Tensor, "B N"]:
        """What the decoder is to say: the pieces, then EOS."""
        return self.target[:, 1:]

    @property
    def target_allowed(self) -> Bool[Tensor, "B N"]:
        """True = a real piece of `target_output`: the places that count in the loss."""
        return self.target_output != PAD

    @property
    def n_target_tokens(self) -> int:
        """Real places of `target_output`, EOS included."""
        return int(self.target_allowed.sum())

    def to(self, device: torch.device | str, non_blocking: bool = False) -> "Batch":
        """The same batch on another device."""
        return Batch(
            self.source.to(device, non_blocking=non_blocking),
            self.target.to(device, non_blocking=non_blocking),
            self.index.to(device, non_blocking=non_blocking),
        )

    def pin_memory(self) -> "Batch":
        """The same batch in page-locked memory, for copies that overlap computation."""
        return Batch(self.source.pin_memory(), self.target.pin_memory(), self.index.pin_memory())


@dataclass
class FlatCorpus:
    """A tokenised split: all pieces of a side in one array, pair i at offsets[i]:offsets[i + 1].

    The arrays may be memory-mapped. No specials are stored.
    """

    source_ids: npt.NDArray[np.int32]
    source_offsets: npt.NDArray[np.int64]
    target_ids: npt.NDArray[np.int32]
    target_offsets: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        if len(self.source_offsets) != len(self.target_offsets):
            raise DataError(
                f"{len(self.source_offsets) - 1} tokenised sources, "
                f"{len(self.target_offsets) - 1} targets"
            )

    def __len__(self) -> int:
        return len(self.source_offsets) - 1

    @property
    def source_lengths(self) -> Lengths:
        """Pieces of each source, without EOS."""
        return np.diff(self.source_offsets)

    @property
    def target_lengths(self) -> Lengths:
        """Pieces of each target, without BOS and EOS."""
        return np.diff(self.target_offsets)

    def batch(self, rows: npt.NDArray[np.int64]) -> Batch:
        """The pairs `rows` as padded tensors, in that order.

        Of no pairs: one row with nothing to say (EOS, and BOS PAD). A process that gets no pair of
        a batch has to take part in the update all the same, and not every model runs on 0 rows.
        """
        if not len(rows):
            source, target = torch.tensor([[EOS]]), torch.tensor([[BOS, PAD]])
            return Batch(source, target, torch.tensor([-1]))
        return Batch(
            source=_padded(self.source_ids, self.source_offsets, rows, bos=False),
            target=_padded(self.target_ids, self.target_offsets, rows, bos=True),
            index=torch.from_numpy(rows.copy()),
        )


def _padded(
    ids: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
    *,
    bos: bool,
) -> Int[Tensor, "B L"]:
    starts, lengths = offsets[rows], offsets[rows + 1] - offsets[rows]
    first = int(bos)
    padded = np.full((len(rows), int(lengths.max(initial=0)) + first + 1), PAD, dtype=np.int64)
    # Column c of row r holds ids[starts[r] + c - first] where that is one of the row's pieces.
    column = np.arange(padded.shape[1])[None, :] - first
    inside = (column >= 0) & (column < lengths[:, None])
    padded[inside] = ids[(starts[:, None] + column)[inside]]
    padded[np.arange(len(rows)), lengths + first] = EOS
    if bos:
        padded[:, 0] = BOS
    return torch.from_numpy(padded)


def cut_by_tokens(
    source_lengths: Lengths, target_lengths: Lengths, batch_tokens: int
) -> npt.NDArray[np.int64]:
    """Cut pairs, in the order given, into runs of at most `batch_tokens` padded tokens.

    The padded size of a run is rows * (longest source + longest target), EOS counted on both
    sides; lengths come without it. A pair larger than the budget is a run of its own.
    Returns the bounds: run k is bounds[k]:bounds[k + 1].
    """
    # A row costs at least 2 tokens, so no run has more than half the budget of rows.
    window = max(1, batch_tokens // 2)
    bounds, n = [0], len(source_lengths)
    while bounds[-1] < n:
        start = bounds[-1]
        source = np.maximum.accumulate(source_lengths[start : start + window])
        target = np.maximum.accumulate(target_lengths[start : start + window])
        size = (source + target + 2) * np.arange(1, len(source) + 1)
        fits = int(np.searchsorted(size, batch_tokens, side="right"))
        bounds.append(start + max(1, fits))
    return np.asarray(bounds, dtype=np.int64)


def random_order(n: int, seed: int, epoch: int, stream: int) -> npt.NDArray[np.int64]:
    """A permutation of 0 … n - 1 that is a pure function of its arguments.

    Made by sorting Philox words, whose sequence numpy guarantees; its `permutation` may change.
    """
    words = np.random.Philox(np.random.SeedSequence([seed, epoch, stream])).random_raw(n)
    return np.argsort(words, kind="stable").astype(np.int64)


def by_length(source_lengths: Lengths, target_lengths: Lengths) -> npt.NDArray[np.int64]:
    """The order in which pairs of like length follow each other; ties stay as they are."""
    # Sources rise within one target length and fall within the next, so that a batch that
    # spans two target lengths doesn't join the longest sources with the shortest.
    swing = np.where(target_lengths % 2 == 0, source_lengths, -source_lengths)
    return np.lexsort((swing, target_lengths))


class BatchSampler(EpochPosition):
    """Which pairs each batch holds, as a pure function of (seed, epoch).

    The pairs are shuffled, then sorted by length, ties left in shuffled order, cut by the token
    budget, and the batches shuffled. Sorting everything, not a part at a time, wastes least on
    padding and makes the same number of batches in every epoch. Without `shuffle` the order is by
    length, the same in every epoch.

    With `world_size` processes of `batch_tokens` each, the batches are those of one process with
    as much as all of them together, and each process takes every world_size-th row of each batch:
    what makes an update doesn't depend on how many work on it. (A share may exceed `batch_tokens`
    by less than one row, and be empty where a batch has fewer rows than there are processes.)
    """

    def __init__(
        self,
        source_lengths: Lengths,
        target_lengths: Lengths,
        *,
        batch_tokens: int,
        seed: int = 0,
        shuffle: bool = True,
        rows: npt.NDArray[np.int64] | None = None,
        draw: Callable[[int], npt.NDArray[np.int64]] | None = None,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        """`rows`: the pairs to take part (all if None); lengths are without specials.

        With `draw` lengths and rows are those of picks, and it tells which pair each of them is in
        an epoch: never one longer than the pick's lengths.
        """
        super().__init__(seed=seed, rank=rank, world_size=world_size)
        self._source, self._target = source_lengths, target_lengths
        self._rows = np.arange(len(source_lengths)) if rows is None else rows
        self._draw = draw
        self._shuffle = shuffle
        in_order, together = self._in_order(self._rows), world_size * batch_tokens
        self._bounds = cut_by_tokens(self._source[in_order], self._target[in_order], together)

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def batches(self) -> list[npt.NDArray[np.int64]]:
        """This process's share of each batch of the epoch: arrays of pair numbers."""
        rows = self._rows
        if self._shuffle:
            rows = rows[random_order(len(rows), self._seed, self.epoch, 0)]
        rows = self._in_order(rows)
        order = np.arange(len(self))
        if self._shuffle:
            order = random_order(len(self), self._seed, self.epoch, 1)
        if self._draw is not None:
            rows = self._draw(self.epoch)[rows]
        return [self.share(rows[self._bounds[k] : self._bounds[k + 1]]) for k in order]

    def _in_order(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return rows[by_length(self._source[rows], self._target[rows])]
