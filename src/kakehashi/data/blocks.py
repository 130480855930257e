"""A block of a stream: checked, tokenised, shuffled, sorted by length, cut into batches.

What it holds is a pure function of the seed, the epoch and the block's rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kakehashi.data.batching import Batch, FlatCorpus, by_length, cut_by_tokens, random_order
from kakehashi.data.ledger import Ledger
from kakehashi.data.lengths import short_enough
from kakehashi.data.sampled import SampledCorpus
from kakehashi.data.share import RawBlock, Start
from kakehashi.data.stream import TrainingStream, pairs_of
from kakehashi.data.subwords import Resegmenter
from kakehashi.data.tokenised import tokenise
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.data.trie import Ints


@dataclass(frozen=True)
class Counts:
    """Pairs of some blocks."""

    read: int = 0
    kept: int = 0
    """Those that are trained on."""
    held_out: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.read + other.read, self.kept + other.kept, self.held_out + other.held_out
        )


@dataclass(frozen=True)
class Block:
    """Flat arrays, from which batches are cut one at a time."""

    start: Start
    after: Start
    counts: Counts
    ledger: Ledger
    """What became of the pairs that aren't in it, or not as they were read."""
    tokens: FlatCorpus
    numbers: Ints
    """Of each pair of `tokens`, see `kakehashi.data.stream`."""
    order: Ints
    """Pairs of `tokens`, batch after batch."""
    bounds: Ints
    sequence: Ints
    """The order of the batches."""

    def batches(self, first: int = 0) -> Iterator[Batch]:
        """The batches but the first ones; `index` holds the pairs' numbers."""
        for k in self.sequence[first:].tolist():
            rows = self.order[self.bounds[k] : self.bounds[k + 1]]
            batch = self.tokens.batch(rows)
            batch.index.copy_(batch.index.new_tensor(self.numbers[rows]))
            yield batch


class BlockMaker:
    """Makes blocks of rows."""

    def __init__(
        self,
        stream: TrainingStream,
        tokenizer: Tokenizer,
        resegment: Resegmenter | None,
        *,
        max_length: int,
        batch_tokens: int,
        seed: int,
    ) -> None:
        """With `resegment` pieces are drawn anew in every epoch."""
        self._stream, self._tokenizer, self._resegment = stream, tokenizer, resegment
        self.max_length, self.batch_tokens, self._seed = max_length, batch_tokens, seed

    def __call__(self, raw: RawBlock) -> Block:
        """Raises DataError for a field that is not text."""
        ledger = Ledger()
        pairs, held_out = self._stream.screen(pairs_of(self._stream.pairs, raw.parts), ledger)
        tokens = tokenise(pairs, self._tokenizer)
        rows = short_enough(tokens, pairs, self.max_length, ledger)
        numbers = np.asarray(pairs.lines, np.int64)
        if self._resegment is not None and len(rows):
            sampled = SampledCorpus(tokens, self._resegment, seed=self._seed, numbers=numbers)
            tokens, numbers = sampled.draw(rows, raw.start.epoch), numbers[rows]
            rows = np.arange(len(rows))
        source, target = tokens.source_lengths, tokens.target_lengths
        rows = rows[self._random_order(len(rows), raw.start, 1)]
        rows = rows[by_length(source[rows], target[rows])]
        bounds = cut_by_tokens(source[rows], target[rows], self.batch_tokens)
        sequence = self._random_order(len(bounds) - 1, raw.start, 2)
        read = sum(len(part.table) for part in raw.parts)
        counts = Counts(read, len(rows), held_out)
        return Block(raw.start, raw.after, counts, ledger, tokens, numbers, rows, bounds, sequence)

    def _random_order(self, n: int, start: Start, what: int) -> Ints:
        # 0 is the order of the shards
        return random_order(n, self._seed, start.epoch, 2 * start.block + what)
