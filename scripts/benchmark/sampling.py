"""What subword sampling costs: milliseconds a training batch, growth, and padding.

python scripts/benchmark/sampling.py [SOURCE_LANGUAGE]

The default corpus and batches; BPE-dropout and unigram sampling, each
with its own tokenizer, one epoch without sampling and one with it.
"""

import sys
import time

import numpy as np

from kakehashi.data.batching import Batch
from kakehashi.data.config import DataConfig, SamplingConfig, TokenizerConfig
from kakehashi.data.corpora import load_corpus
from kakehashi.data.module import TranslationData
from kakehashi.data.prepare import prepare_tokenizer

SETTINGS = {
    "bpe, dropout 0.1": TokenizerConfig("bpe", 4000, sampling=SamplingConfig(dropout=0.1)),
    "unigram, alpha 0.5": TokenizerConfig("unigram", 6000, sampling=SamplingConfig(alpha=0.5)),
    "unigram, alpha 0.2": TokenizerConfig("unigram", 6000, sampling=SamplingConfig(alpha=0.2)),
}


def padded(batch: Batch) -> int:
    """Places of a batch, padding included."""
    return batch.source.numel() + batch.target_output.numel()


def real(batch: Batch) -> int:
    """Pieces of a batch, EOS included."""
    return int(batch.source_allowed.sum()) + batch.n_target_tokens


def main(source_language: str = "de") -> None:
    """Measure each setting over one epoch."""
    data_config = DataConfig(name=f"tatoeba-{source_language}-en", source_language=source_language)
    corpus = load_corpus(data_config)
    for name, config in SETTINGS.items():
        tokenizer = prepare_tokenizer(config, corpus, data_config.root)
        plain, drawn = (
            TranslationData(corpus, tokenizer, batch_tokens=data_config.batch_tokens, sampling=s)
            for s in (None, config.sampling)
        )
        figures = []
        for data in (plain, drawn):
            loader = data.train_dataloader()
            start = time.process_time()
            sizes = [(padded(batch), real(batch)) for batch in loader]
            seconds = time.process_time() - start
            places, pieces = np.array(sizes).T
            figures.append((seconds / len(sizes), len(sizes), places.sum() / pieces.sum()))
            fullest = places.max()
        (before, n_plain, waste_plain), (after, n_drawn, waste_drawn) = figures
        growth = ", ".join(f"{factor:.3f}" for factor in drawn.facts()["growth_by_sampling"])
        print(
            f"{name}: {1e3 * before:.1f} -> {1e3 * after:.1f} ms a batch; {n_plain} -> {n_drawn} "
            f"batches an epoch; growth {growth}; places for each piece {waste_plain:.3f} -> "
            f"{waste_drawn:.3f}; fullest batch {fullest}"
        )


if __name__ == "__main__":
    main(*sys.argv[1:2])
