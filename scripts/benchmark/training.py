"""Tokens a second of bare training updates, with freed memory kept or given back.

python scripts/benchmark/training.py [THREADS]

The default model on random sentences of 11 pieces; an update is four batches of 46 sentences, a
vocabulary of 6,000 of which 3,121 are spoken. Each way runs in a process of its own, in turns.
"""

import subprocess
import sys
import time

import torch

from kakehashi.allocator import keep_freed_memory
from kakehashi.models.build import build_model
from kakehashi.models.config import TransformerConfig
from kakehashi.training.config import OptimizerConfig
from kakehashi.training.objective import cross_entropy
from kakehashi.training.optimizer import build_optimizer

VOCABULARY, SPOKEN, SENTENCES, PIECES, BATCHES = 6000, 3121, 46, 11, 4
UPDATES, TURNS = 12, 3


def measure() -> float:
    """Source and target tokens a second."""
    torch.manual_seed(1)
    model = build_model(TransformerConfig(), VOCABULARY).train()
    optimizer = build_optimizer(model, OptimizerConfig())
    spoken = torch.arange(SPOKEN)
    allowed = torch.ones(SENTENCES, PIECES, dtype=torch.bool)
    source = torch.randint(4, VOCABULARY, (SENTENCES, PIECES))
    target = torch.randint(4, SPOKEN, (SENTENCES, PIECES))

    def update() -> None:
        for _ in range(BATCHES):
            features = model.features(source, allowed, target).flatten(0, 1)
            weight = model.output.weight.index_select(0, spoken)
            loss = cross_entropy(features, weight, None, target.flatten(), 0.1, 512)
            (loss.smoothed / BATCHES).backward()
        optimizer.step()
        optimizer.zero_grad()

    update()
    start = time.perf_counter()
    for _ in range(UPDATES):
        update()
    return UPDATES * BATCHES * SENTENCES * 2 * PIECES / (time.perf_counter() - start)


def main() -> None:
    """Print one line for each turn and way."""
    threads = sys.argv[1] if len(sys.argv) > 1 else "1"
    if len(sys.argv) > 2:
        torch.set_num_threads(int(threads))
        if sys.argv[2] == "kept":
            keep_freed_memory()
        print(f"{measure():.0f}")
        return
    for _ in range(TURNS):
        for way in ("returned", "kept"):
            words = [sys.executable, __file__, threads, way]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            print(f"freed memory {way}: {done.stdout.strip()} tokens/s", flush=True)


if __name__ == "__main__":
    main()
