"""A corpus as Lightning takes it: loaders of batches for training and validation."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from lightning import LightningDataModule

from kakehashi.data.batching import Batch, BatchSampler, FlatCorpus, cut_by_tokens
from kakehashi.data.blocks import BlockMaker
from kakehashi.data.corpora.base import Corpus
from kakehashi.data.ledger import Ledger
from kakehashi.data.ledgerfile import LedgerFile
from kakehashi.data.lengths import short_enough
from kakehashi.data.loader import BatchLoader, Loader, PoolLoader
from kakehashi.data.mixture import Mixture, temperature_weights
from kakehashi.data.notes import note
from kakehashi.data.pairs import Pairs
from kakehashi.data.pools import PoolSampler
from kakehashi.data.sampled import SampledCorpus
from kakehashi.data.sampling import resegmenter, sampled
from kakehashi.data.share import Share
from kakehashi.data.stream import SHARD, TrainingStream, shard_name
from kakehashi.data.streaming import Seen, StreamLoader
from kakehashi.data.tokenised import cached
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.data.tokenizer_config import SamplingConfig
from kakehashi.errors import DataError
from kakehashi.symbols import EOS


class TranslationData(LightningDataModule):
    """Tokenised train and valid of a corpus.

    Training batches are a pure function of (seed, epoch), each shared out between the processes.
    Validation runs through all of valid in one fixed order, on every process alike, so its figures
    don't depend on their number. Needs `use_distributed_sampler=False` of the Trainer.
    """

    def __init__(
        self,
        corpus: Corpus,
        tokenizer: Tokenizer,
        *,
        root: str | Path = "data",
        max_length: int = 128,
        batch_tokens: int = 4096,
        validation_batch_tokens: int = 8192,
        seed: int = 0,
        workers: int = 0,
        sampling: SamplingConfig | None = None,
        temperature: float | None = None,
        processes: int = 1,
        ledger: Path | None = None,
    ) -> None:
        """Tokenise, or find the tokenised text in `root`/cache.

        With `sampling` the training batches hold other pieces in every epoch; `train_tokens` and
        validation keep the plain ones.

        Training pairs with more than `max_length` pieces on a side go into the corpus's ledger
        and take no part; the batches' `index` counts all of train. Of a mixture each epoch holds
        the corpora by their weights, or by `temperature`. Raises DataError when none is left.
        `processes`: how many train together, each on its share of every batch.

        Of a corpus with a stream `train_tokens` are those of the sample, training batches come from
        the stream, and what becomes of its pairs is written to the file `ledger` as it passes.
        """
        super().__init__()
        self.corpus, self.tokenizer = corpus, tokenizer
        self.batch_tokens, self.validation_batch_tokens = batch_tokens, validation_batch_tokens
        self._seed, self._workers, self._processes = seed, workers, processes
        self.train_tokens = cached(corpus.train, tokenizer, root)
        self.valid_tokens = cached(corpus.valid, tokenizer, root)
        self._rows = _short_enough(self.train_tokens, corpus, max_length)
        self._drawn: SampledCorpus | None = None
        if sampling is not None and sampling.kind is not None:
            self._drawn = sampled(self.train_tokens, tokenizer, sampling, seed=seed)
        self._parts = [part.name for part in corpus.parts]
        self._sizes: list[int] = []
        self._mixture = self._mix(temperature) if corpus.parts else None
        self._stream: StreamLoader | None = None
        self._ledger, self._max_length, self._sampling = ledger, max_length, sampling
        self.seen: Seen | None = None
        """What a run has read of its stream, once `settle` was called."""

    def _mix(self, temperature: float | None) -> Mixture:
        lines = np.asarray(self.corpus.train.lines)[self._rows]
        last = [part.until for part in self.corpus.parts]
        corpora = np.split(self._rows, np.searchsorted(lines, last[:-1], side="right"))
        self._sizes = [len(rows) for rows in corpora]
        for name, size in zip(self._parts, self._sizes, strict=True):
            if not size:
                raise DataError(f"no pair of the corpus {name!r} is left to train on")
        if temperature is None:
            weights = [part.weight for part in self.corpus.parts]
        else:
            weights = temperature_weights(self._sizes, temperature)
        tokens = self.train_tokens
        lengths = tokens.source_lengths, tokens.target_lengths
        return Mixture(*lengths, corpora, weights, self._seed)

    @property
    def valid_pairs(self) -> Pairs:
        """The raw text of valid."""
        return self.corpus.valid

    @property
    def test_pairs(self) -> Pairs:
        """The raw text of test."""
        return self.corpus.test

    @property
    def n_training_pairs(self) -> int:
        """Pairs that take part in training; of a stream those that the run has come across."""
        return len(self._rows) if self.seen is None else self.seen.counts.kept

    def pair(self, index: int) -> dict[str, Any]:
        """A training pair, for a record of what went wrong with it; of a stream where it stands."""
        if (stream := self.corpus.stream) is not None:
            shard = (index - 1) // SHARD
            place = {"file": shard_name(stream.pairs, shard), "line": index - shard * SHARD}
            return {"index": index, **place}
        train = self.corpus.train
        file, line = train.place(index)
        said = {"source": train.source[index], "target": train.target[index]}
        return {"index": index, "file": file, "line": line, **said}

    def longest_batch(self, tokens: int) -> Batch:
        """A batch of at most so many padded tokens, of the longest training pairs."""
        source = self.train_tokens.source_lengths[self._rows]
        target = self.train_tokens.target_lengths[self._rows]
        order = np.argsort(-(source + target), kind="stable")[: max(1, tokens // 2)]
        fits = cut_by_tokens(source[order], target[order], tokens)[1]
        return self.train_tokens.batch(self._rows[order[:fits]])

    def n_tokens(self) -> int:
        """Source and target pieces of the training pairs, an EOS each included."""
        source = self.train_tokens.source_lengths[self._rows]
        return int((source + self.train_tokens.target_lengths[self._rows] + 2).sum())

    def train_dataloader(self) -> Loader | StreamLoader:
        """This process's share of every training batch; of a stream, its own batches."""
        trainer, mixture = self.trainer, self._mixture
        process = {
            "rank": 0 if trainer is None else trainer.global_rank,
            "world_size": self._processes,
        }
        if self.corpus.stream is not None:
            self._stream = self._streamed(self.corpus.stream, **process)
            return self._stream
        shared: dict[str, Any] = {
            "batch_tokens": self.batch_tokens,
            "seed": self._seed,
            "draw": None if mixture is None else mixture.rows,
            **process,
        }
        if self._drawn is not None:
            sampler = PoolSampler(self._drawn, rows=self._rows, **shared)
            return PoolLoader(sampler, workers=self._workers)
        lengths = self.train_tokens if mixture is None else mixture
        return BatchLoader(
            self.train_tokens,
            BatchSampler(
                lengths.source_lengths,
                lengths.target_lengths,
                rows=self._rows if mixture is None else None,
                **shared,
            ),
            workers=self._workers,
        )

    def _streamed(self, stream: TrainingStream, rank: int, world_size: int) -> StreamLoader:
        assert self._ledger is not None, "a stream needs a ledger file"
        sampling = self._sampling
        draws = None
        if sampling is not None and sampling.kind is not None:
            draws = resegmenter(self.tokenizer, sampling)
        share = Share(
            stream.pairs, buffer=stream.buffer, seed=self._seed, rank=rank, world_size=world_size
        )
        maker = BlockMaker(
            stream,
            self.tokenizer,
            draws,
            max_length=self._max_length,
            batch_tokens=self.batch_tokens,
            seed=self._seed,
        )
        ledger = LedgerFile.of_process(self._ledger, self.corpus.ledger, rank)
        return StreamLoader(share, maker, ledger, workers=self._workers)

    def settle(self) -> None:
        """After training on a stream: what was read of it goes into the corpus's counts.

        All processes have to call this together. Nothing else is done for other corpora.
        """
        if self._stream is not None:
            self.seen, totals = self._stream.seen()
            self.corpus.ledger.include(totals)
            self.corpus.read["train"] = self.seen.counts.read

    def val_dataloader(self) -> BatchLoader:
        """All of valid, by length."""
        sampler = BatchSampler(
            self.valid_tokens.source_lengths,
            self.valid_tokens.target_lengths,
            batch_tokens=self.validation_batch_tokens,
            shuffle=False,
        )
        return BatchLoader(self.valid_tokens, sampler)

    def spoken_pieces(self) -> npt.NDArray[np.int64]:
        """The pieces that training targets hold, in whatever epoch, EOS, and the symbols.

        All pieces where training text is a stream: what it holds is not known beforehand.
        """
        if self.corpus.stream is not None:
            return np.arange(self.tokenizer.vocab_size)
        always = np.array([EOS, *self.tokenizer.symbol_numbers()])
        if self._drawn is not None:
            return np.union1d(self._drawn.target_pieces(self._rows), always)
        return np.union1d(self.train_tokens.target_ids, always)

    def facts(self) -> dict[str, Any]:
        """Counts for a run's summary: pairs, pieces without specials, and the ledger's totals."""
        train, stream = self.train_tokens, self.corpus.stream
        lengths = train.source_lengths, train.target_lengths
        pieces = [int(of_side[self._rows].sum()) for of_side in lengths]
        return {
            "mixture": self.mixture(),
            "stream": None if stream is None else self._stream_facts(stream),
            "training_pairs": self.n_training_pairs,
            "validation_pairs": len(self.corpus.valid),
            "test_pairs": len(self.corpus.test),
            "source_pieces": pieces[0] if stream is None else None,
            "target_pieces": pieces[1] if stream is None else None,
            "pairs_read": self.corpus.read,
            "ledger": [asdict(total) for total in self.corpus.ledger.totals()],
            "growth_by_sampling": None if self._drawn is None else self._drawn.growth(self._rows),
        }

    def _stream_facts(self, stream: TrainingStream) -> dict[str, Any]:
        return {
            "shards": stream.pairs.n_shards,
            "sample": stream.sample,
            "seen": None if self.seen is None else asdict(self.seen),
        }

    def mixture(self) -> list[dict[str, Any]]:
        """Of each corpus of a mixture its pairs, how many an epoch holds, and their share."""
        if self._mixture is None:
            return []
        taken = self._mixture.pairs_an_epoch
        return [
            {"name": name, "pairs": size, "pairs_an_epoch": n, "share": round(n / sum(taken), 4)}
            for name, size, n in zip(self._parts, self._sizes, taken, strict=True)
        ]


def _short_enough(tokens: FlatCorpus, corpus: Corpus, max_length: int) -> npt.NDArray[np.int64]:
    # of a stream, what is in the sample is entered when the stream passes it
    ledger = corpus.ledger if corpus.stream is None else Ledger()
    rows = short_enough(tokens, corpus.train, max_length, ledger)
    if left_out := len(tokens) - len(rows):
        what = "train" if corpus.stream is None else "the sample of train"
        note(
            f"{corpus.name}, {what}: {left_out:,} of {len(tokens):,} pairs have more than "
            f"{max_length} pieces (data.max_length) on a side and are left out"
        )
    if not len(rows):
        raise DataError(
            f"{corpus.train.origin}: no training pair has at most {max_length} pieces on each "
            "side; raise data.max_length"
        )
    return rows
