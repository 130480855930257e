"""A corpus as Lightning takes it: loaders of batches for training and validation."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from lightning import LightningDataModule

from kakehashi.data.batching import Batch, BatchSampler, FlatCorpus, cut_by_tokens
from kakehashi.data.corpora.base import Corpus
from kakehashi.data.integrity import sides
from kakehashi.data.loader import BatchLoader, Loader, PoolLoader
from kakehashi.data.mixture import Mixture, temperature_weights
from kakehashi.data.notes import note
from kakehashi.data.pairs import Pairs
from kakehashi.data.pools import PoolSampler
from kakehashi.data.sampled import SampledCorpus
from kakehashi.data.sampling import sampled
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
    ) -> None:
        """Tokenise, or find the tokenised text in `root`/cache.

        With `sampling` the training batches hold other pieces in every epoch; `train_tokens` and
        validation keep the plain ones.

        Training pairs with more than `max_length` pieces on a side go into the corpus's ledger
        and take no part; the batches' `index` counts all of train. Of a mixture each epoch holds
        the corpora by their weights, or by `temperature`. Raises DataError when none is left.
        `processes`: how many train together, each on its share of every batch.
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
        """Pairs that take part in training."""
        return len(self._rows)

    def pair(self, index: int) -> dict[str, Any]:
        """A training pair, for a record of what went wrong with it."""
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

    def train_dataloader(self) -> Loader:
        """This process's share of every training batch."""
        trainer, mixture = self.trainer, self._mixture
        shared: dict[str, Any] = {
            "batch_tokens": self.batch_tokens,
            "seed": self._seed,
            "rank": 0 if trainer is None else trainer.global_rank,
            "world_size": self._processes,
            "draw": None if mixture is None else mixture.rows,
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
        """The pieces that training targets hold, in whatever epoch, EOS, and the symbols."""
        always = np.array([EOS, *self.tokenizer.symbol_numbers()])
        if self._drawn is not None:
            return np.union1d(self._drawn.target_pieces(self._rows), always)
        return np.union1d(self.train_tokens.target_ids, always)

    def facts(self) -> dict[str, Any]:
        """Counts for a run's summary: pairs, pieces without specials, and the ledger's totals."""
        train = self.train_tokens
        return {
            "mixture": self.mixture(),
            "training_pairs": self.n_training_pairs,
            "validation_pairs": len(self.corpus.valid),
            "test_pairs": len(self.corpus.test),
            "source_pieces": int(train.source_lengths[self._rows].sum()),
            "target_pieces": int(train.target_lengths[self._rows].sum()),
            "pairs_read": self.corpus.read,
            "ledger": [asdict(total) for total in self.corpus.ledger.totals()],
            "growth_by_sampling": None if self._drawn is None else self._drawn.growth(self._rows),
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


def _short_enough(tokens: FlatCorpus, corpus: Corpus, max_length: int) -> np.ndarray[Any, Any]:
    source, target = tokens.source_lengths > max_length, tokens.target_lengths > max_length
    for i in np.flatnonzero(source | target).tolist():
        side = sides(bool(source[i]), bool(target[i]))
        assert side is not None
        reason = f"more than {max_length} pieces"
        corpus.ledger.add("train", *corpus.train.place(i), side, reason)
    rows = np.flatnonzero(~(source | target))
    if left_out := len(tokens) - len(rows):
        note(
            f"{corpus.name}, train: {left_out:,} of {len(tokens):,} pairs have more than "
            f"{max_length} pieces (data.max_length) on a side and are left out"
        )
    if not len(rows):
        raise DataError(
            f"{corpus.train.origin}: no training pair has at most {max_length} pieces on each "
            "side; raise data.max_length"
        )
    return rows
