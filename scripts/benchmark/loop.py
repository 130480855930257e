"""What the training loop costs beside a bare PyTorch loop over the same batches.

python scripts/benchmark/loop.py [UPDATES] [TURNS] [--model tiny|default]

Both train the same model on the same batches of the embedded corpus, with the same loss (a mean
over the tokens of an update), clipping, optimiser and schedule, dropout seeded before each batch:
the weights have to be the same at the end. One process for each way and turn, one thread, in turns;
no validation but the last, whose time does not count. `saving` is the training loop with a
checkpoint every `callbacks.save_minutes`=0.1, fifty times as often as by default.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import lightning
import torch

from kakehashi.allocator import keep_freed_memory
from kakehashi.data.batching import Batch
from kakehashi.data.config import DataConfig
from kakehashi.data.corpora import load_corpus
from kakehashi.data.module import TranslationData
from kakehashi.data.prepare import prepare_tokenizer
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.data.tokenizer_config import TokenizerConfig
from kakehashi.decoding.config import DecodingConfig
from kakehashi.models.build import build_model
from kakehashi.models.config import TransformerConfig
from kakehashi.models.interface import TranslationModel
from kakehashi.training.config import (
    AveragingConfig,
    CallbacksConfig,
    LoggerConfig,
    ObjectiveConfig,
    OptimizerConfig,
    TrainerConfig,
)
from kakehashi.training.fit import FitSettings, fit
from kakehashi.training.objective import cross_entropy
from kakehashi.training.optimizer import build_optimizer
from kakehashi.training.schedule import Schedule, ScheduleConfig
from kakehashi.training.seeds import batch_seed
from kakehashi.training.validation import Validator

ACCUMULATE, CLIP = 2, 1.0
SIZES = {
    "default": TransformerConfig(),
    "tiny": TransformerConfig(encoder_layers=1, decoder_layers=1, d_model=64, d_feedforward=128),
}


def parts(size: str) -> tuple[TranslationModel[Any], TranslationData, Tokenizer]:
    """Model, data and tokenizer, the same in every process."""
    keep_freed_memory()
    config = DataConfig()
    corpus = load_corpus(config)
    tokenizer = prepare_tokenizer(TokenizerConfig(), corpus, config.root)
    corpus.valid = corpus.valid.select(range(8))
    data = TranslationData(corpus, tokenizer, root=config.root, seed=1)
    lightning.seed_everything(1, verbose=False)
    return build_model(SIZES[size], tokenizer.vocab_size), data, tokenizer


def bare(size: str, updates: int) -> tuple[float, float]:
    """Seconds of the updates, and a sum over the weights."""
    model, data, _ = parts(size)
    model.train()
    optimizer = build_optimizer(model, OptimizerConfig())
    schedule = Schedule(ScheduleConfig(), updates)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule.__call__)
    loader = data.train_dataloader()

    def endless() -> Iterator[Batch]:
        while True:
            yield from loader

    batches, number = endless(), 0
    start = time.perf_counter()
    for _ in range(updates):
        tokens = 0
        for _ in range(ACCUMULATE):
            batch = next(batches)
            torch.manual_seed(batch_seed(1, number, 0))
            number += 1
            features = model.features(batch.source, batch.source_allowed, batch.target_input)
            real = batch.target_allowed.flatten().nonzero().squeeze(1)
            loss = cross_entropy(
                features.flatten(0, 1).index_select(0, real),
                model.output.weight,
                None,
                batch.target_output.flatten().index_select(0, real),
                ObjectiveConfig().label_smoothing,
                ObjectiveConfig().chunk,
            )
            (loss.smoothed * len(real) / 1024).backward()
            tokens += len(real)
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        scale, norm = 1024 / tokens, torch.nn.utils.get_total_norm(gradients).item()
        torch._foreach_mul_(gradients, scale * min(1.0, CLIP / (scale * norm + 1e-6)))
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
    seconds = time.perf_counter() - start
    return seconds, sum_of(model)


def sum_of(model: torch.nn.Module) -> float:
    """A sum over all weights."""
    return sum(float(p.detach().double().sum()) for p in model.parameters())


def whole(size: str, updates: int, minutes: float) -> tuple[float, float, float]:
    """The same by `fit`, and the seconds that checkpoints took."""
    model, data, tokenizer = parts(size)
    decoding = DecodingConfig(beam=1, max_ratio=0.1, max_extra=1)
    validator = Validator(data.valid_pairs.target, tokenizer.decode, "en", decoding)
    settings = FitSettings(
        TrainerConfig(
            max_updates=updates, validate_every=1.0 * updates, accumulate=ACCUMULATE, clip=CLIP
        ),
        callbacks=CallbacksConfig(AveragingConfig("none"), save_minutes=minutes),
        logger=LoggerConfig(),
        seed=1,
    )
    with tempfile.TemporaryDirectory() as folder:
        fitted = fit(model, data, validator, settings, Path(folder))
    training = fitted.points[-1].seconds - fitted.validation_seconds
    return training, sum_of(model), fitted.saving_seconds


def main() -> None:
    """Print a line for each way and turn, then the ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("updates", type=int, nargs="?", default=150)
    parser.add_argument("turns", type=int, nargs="?", default=3)
    parser.add_argument("--model", default="tiny", choices=sorted(SIZES))
    parser.add_argument("--way")
    words = parser.parse_args()
    if words.way:
        if words.way == "bare":
            numbers: tuple[float, ...] = bare(words.model, words.updates)
        else:
            numbers = whole(words.model, words.updates, 0.1 if words.way == "saving" else 1e9)
        print(*numbers)
        return
    best: dict[str, float] = {}
    for _ in range(words.turns):
        for way in ("bare", "loop", "saving"):
            command = [sys.executable, __file__, str(words.updates), "--model", words.model]
            done = subprocess.run(
                [*command, "--way", way], stdout=subprocess.PIPE, text=True, check=True
            )
            seconds, weights, *rest = (float(word) for word in done.stdout.split())
            best[way] = min(seconds, best.get(way, seconds))
            saving = f", {rest[0]:.3f} s of it saving" if way != "bare" else ""
            print(f"{way:7} {seconds:7.2f} s{saving}; weights {weights!r}", flush=True)
    print(f"loop / bare: {best['loop'] / best['bare']:.3f} (fastest of {words.turns} each)")


if __name__ == "__main__":
    main()
