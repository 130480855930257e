"""What subword sampling costs: milliseconds a training batch, growth, and padding.

python scripts/benchmark/sampling.py [SOURCE_LANGUAGE]

The default corpus and batches; BPE-dropout and unigram sampling, each with its own tokenizer. For
each one epoch of batches is made without sampling and with it, and the default model is trained on
some of both. Times are of the processor, so that other programs count for little.
"""

import sys
import time

import numpy as np
import torch

from kakehashi.allocator import keep_freed_memory
from kakehashi.data.batching import Batch
from kakehashi.data.config import DataConfig
from kakehashi.data.corpora import load_corpus
from kakehashi.data.module import TranslationData
from kakehashi.data.prepare import prepare_tokenizer
from kakehashi.data.tokenizer_config import SamplingConfig, TokenizerConfig
from kakehashi.models.build import build_model
from kakehashi.models.config import TransformerConfig
from kakehashi.training.config import OptimizerConfig
from kakehashi.training.objective import cross_entropy
from kakehashi.training.optimizer import build_optimizer

TRAINED = 80
"""Batches; every fourth is followed by an update."""

SETTINGS = {
    "bpe, dropout 0.1": TokenizerConfig("bpe", 4000, sampling=SamplingConfig(dropout=0.1)),
    "unigram, alpha 0.5": TokenizerConfig("unigram", 8000, sampling=SamplingConfig(alpha=0.5)),
    "unigram, alpha 0.2": TokenizerConfig("unigram", 8000, sampling=SamplingConfig(alpha=0.2)),
}


def padded(batch: Batch) -> int:
    """Places of a batch, padding included."""
    return batch.source.numel() + batch.target_output.numel()


def real(batch: Batch) -> int:
    """Pieces of a batch, EOS included."""
    return int(batch.source_allowed.sum()) + batch.n_target_tokens


def speed(data: TranslationData) -> float:
    """Real pieces for each second of the processor in training, drawing included."""
    torch.manual_seed(1)
    vocabulary = data.tokenizer.vocab_size
    model = build_model(TransformerConfig(), vocabulary).train()
    spoken = torch.from_numpy(data.spoken_pieces())
    places = torch.zeros(vocabulary, dtype=torch.int64)
    places[spoken] = torch.arange(len(spoken))
    optimizer = build_optimizer(model, OptimizerConfig())
    loader = data.train_dataloader()
    drawing = time.process_time()
    batches = list(loader)
    drawing = (time.process_time() - drawing) / len(batches)
    start, pieces = time.process_time(), 0
    for k, batch in enumerate(batches[:TRAINED]):
        features = model.features(batch.source, batch.source_allowed, batch.target_input)
        kept = batch.target_allowed.flatten().nonzero().squeeze(1)
        target = places[batch.target_output.flatten().index_select(0, kept)]
        features = features.flatten(0, 1).index_select(0, kept)
        weight = model.output.weight.index_select(0, spoken)
        cross_entropy(features, weight, None, target, 0.1, 512).smoothed.backward()
        if k % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
        pieces += real(batch)
    return pieces / (time.process_time() - start + TRAINED * drawing)


def main(source_language: str = "de") -> None:
    """Measure each setting over one epoch."""
    data_config = DataConfig(name=f"tatoeba-{source_language}-en", source_language=source_language)
    keep_freed_memory()
    corpus = load_corpus(data_config)
    for name, config in SETTINGS.items():
        tokenizer = prepare_tokenizer(config, corpus, data_config.root)
        plain, drawn = (
            TranslationData(corpus, tokenizer, batch_tokens=1024, sampling=s)
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
        speeds = speed(plain), speed(drawn)
        growth = ", ".join(f"{factor:.3f}" for factor in drawn.facts()["growth_by_sampling"])
        print(
            f"{name}: {1e3 * before:.1f} -> {1e3 * after:.1f} ms a batch; {n_plain} -> {n_drawn} "
            f"batches an epoch; growth {growth}; places for each piece {waste_plain:.3f} -> "
            f"{waste_drawn:.3f}; fullest batch {fullest}; training "
            f"{speeds[0]:,.0f} -> {speeds[1]:,.0f} pieces/s"
        )


if __name__ == "__main__":
    main(*sys.argv[1:2])
