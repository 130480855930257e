"""A corpus of numbers with a rule to learn, small enough to train on in a test."""

import lightning
import numpy as np
import pytest

from kakehashi.data.batching import Batch, BatchSampler, FlatCorpus
from kakehashi.data.loader import BatchLoader
from kakehashi.decoding.config import DecodingConfig
from kakehashi.models.build import build_model
from kakehashi.models.config import TransformerConfig
from kakehashi.training.validation import Validator

VOCAB = 17


def flat(sentences: list[tuple[list[int], list[int]]]) -> FlatCorpus:
    def side(which: int):
        offsets = np.cumsum([0] + [len(pair[which]) for pair in sentences])
        return np.concatenate([pair[which] for pair in sentences]).astype(np.int32), offsets

    return FlatCorpus(*side(0), *side(1))


def words(ids) -> str:
    return " ".join(f"w{i}" for i in ids)


class NumberData(lightning.LightningDataModule):
    """Sources of numbers, targets the same numbers plus one, in the same order."""

    def __init__(self, n: int = 96, batch_tokens: int = 120) -> None:
        super().__init__()
        rng = np.random.default_rng(3)
        pairs = []
        for _ in range(n):
            source = rng.integers(4, VOCAB - 1, rng.integers(2, 7)).tolist()
            pairs.append((source, [i + 1 for i in source]))
        self.train_pairs, self.valid = flat(pairs), flat(pairs[:23])
        self.references = [words(target) for _, target in pairs[:23]]
        self.batch_tokens = batch_tokens

    def _loader(self, corpus: FlatCorpus, shuffle: bool) -> BatchLoader:
        sampler = BatchSampler(
            corpus.source_lengths,
            corpus.target_lengths,
            batch_tokens=self.batch_tokens,
            seed=1,
            shuffle=shuffle,
        )
        return BatchLoader(corpus, sampler)

    def train_dataloader(self) -> BatchLoader:
        return self._loader(self.train_pairs, shuffle=True)

    def val_dataloader(self) -> BatchLoader:
        return self._loader(self.valid, shuffle=False)

    def validator(self) -> Validator:
        # short limits: what has learnt nothing goes on to the limit
        decoding = DecodingConfig(beam=1, max_ratio=1.0, max_extra=2)
        return Validator(self.references, words, "en", decoding)

    def batches(self) -> list[Batch]:
        return list(self.val_dataloader())


@pytest.fixture
def numbers() -> NumberData:
    return NumberData()


@pytest.fixture
def tiny_model():
    config = TransformerConfig(
        encoder_layers=1, decoder_layers=1, d_model=16, d_feedforward=24, n_heads=2
    )
    return build_model(config, VOCAB)
