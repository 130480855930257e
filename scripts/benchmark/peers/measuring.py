"""What every program beside this one shares: the work, and being asked for it again and again.

It imports nothing but torch, so that it runs in any peer's environment.
"""

import json
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor

VOCABULARY, SENTENCES, PIECES, BATCH, BEAM = 8000, 500, 16, 64, 5
EOS = 3
"""Ids 0 to 3 stand for padding, unknown, BOS and EOS (each peer in its own order)."""
SIZES = {
    # layers on each side, width, feed-forward width, heads
    "tiny": (4, 128, 256, 4),
    "base": (6, 512, 2048, 8),
}


def sources(eos: int = EOS) -> list[Tensor]:
    """500 sentences of 16 random pieces and EOS, in batches of 64."""
    generator = torch.Generator().manual_seed(1)
    rows = torch.randint(4, VOCABULARY, (SENTENCES, PIECES + 1), generator=generator)
    rows[:, -1] = eos
    return list(rows.split(BATCH))


def answer(search: Callable[[str], None]) -> None:
    """For each line ``beam`` or ``greedy`` on stdin do that search over all sentences.

    Prints the processor seconds and the seconds it took. The first of each kind is a warm-up that
    nobody counts.
    """
    for line in sys.stdin:
        wall, processor = time.perf_counter(), time.process_time()
        search(line.strip())
        spent = {
            "processor": time.process_time() - processor,
            "wall": time.perf_counter() - wall,
        }
        print(json.dumps(spent), flush=True)
