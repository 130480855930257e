"""What large runs take, worked out from the configuration: tokens, FLOPs, memory, bytes exchanged.

python scripts/benchmark/scaling.py [--measure PAIRS]

Nothing is trained; docs/scaling.md says what each figure rests on. With --measure the order of an
epoch is made for so many drawn lengths, and timed.
"""

import argparse
import resource
import time
from dataclasses import dataclass

import numpy as np
import torch

from kakehashi.data.batching import BatchSampler
from kakehashi.models.build import build_model
from kakehashi.models.config import TransformerConfig

PEAK = 312e12
"""FLOP/s of one device (A100, bfloat16 with float32 sums, no sparsity)."""
UTILISATION = 0.4
REAL = 0.93
"""Share of the token budget that is not padding."""
LINK = 150e9
"""Bytes a second that a device can send to its neighbour within a machine (NVLink, half of it)."""
NETWORK = 12.5e9
"""The same between machines, for each machine (100 Gbit/s)."""
READ, TOKENISE = 30_562, 71_564
"""Lines of both sides a second, one thread (docs/log.md)."""
ORDER = 60
"""Bytes a pair while an epoch's order is made: 16 of lengths, 44 above them (--measure)."""


@dataclass
class Case:
    """One run."""

    name: str
    model: TransformerConfig
    vocab_size: int
    pairs: float
    source: int
    """Mean pieces of a source, EOS included."""
    target: int
    devices: int
    machines: int
    batch_tokens: int
    """Of one device, both sides, padding included."""
    accumulate: int
    updates: int


def transformer(d_model: int, d_feedforward: int, n_heads: int) -> TransformerConfig:
    """Six layers on either side, as in configs/model/transformer_base.yaml and _big.yaml."""
    return TransformerConfig(
        encoder_layers=6,
        decoder_layers=6,
        d_model=d_model,
        d_feedforward=d_feedforward,
        n_heads=n_heads,
        bias=True,
    )


CASES = [
    Case("WMT14, base", transformer(512, 2048, 8), 37_000, 4.5e6, 30, 30, 8, 1, 6250, 1, 100_000),
    Case("100 M, big", transformer(1024, 4096, 16), 32_000, 1e8, 30, 30, 32, 4, 12500, 1, 300_000),
]


def forward_flops(case: Case) -> float:
    """Of one pair: two for each product of a weight with a token, and the attention products."""
    model, s, t = case.model, case.source, case.target
    d, f = model.d_model, model.d_feedforward
    encoder = model.encoder_layers * (s * (4 * d * d + 2 * d * f) + 2 * s * s * d)
    own = t * (4 * d * d + 2 * d * f) + 2 * t * t * d
    cross = t * 2 * d * d + s * 2 * d * d + 2 * s * t * d
    return 2.0 * (encoder + model.decoder_layers * (own + cross) + t * d * case.vocab_size)


def activations(case: Case) -> float:
    """Bytes kept for the backward pass of one batch in 16 bits.

    34 d + 5 h n bytes a token and layer (Korthikanti et al., 2022, equation 2); the decoder's
    second attention adds 11 d + 5 h n.
    """
    model, s, t = case.model, case.source, case.target
    d, h = model.d_model, model.n_heads
    pairs = case.batch_tokens / (s + t)
    encoder = model.encoder_layers * s * (34 * d + 5 * h * s)
    decoder = model.decoder_layers * t * (45 * d + 5 * h * (s + t))
    return pairs * (encoder + decoder)


def report(case: Case) -> list[tuple[str, str]]:
    """Rows of the table."""
    with torch.device("meta"):
        model = build_model(case.model, case.vocab_size)
    parameters = sum(p.numel() for p in model.parameters())
    pair = case.source + case.target
    an_update = case.devices * case.batch_tokens * case.accumulate * REAL
    tokens = an_update * case.updates
    flops = 3 * forward_flops(case) * tokens / pair
    compute = 3 * forward_flops(case) * an_update / pair / (case.devices * PEAK * UTILISATION)
    # a ring: every device sends, and receives, 2 (k - 1) / k times the gradients
    sent = 2 * (case.devices - 1) / case.devices * 4 * parameters
    exchange = sent / LINK if case.machines == 1 else sent / NETWORK
    state, loss = 20 * parameters, 4 * case.vocab_size * (case.model.d_model + 512)
    lines = 2 * case.pairs
    orders = ORDER * case.pairs
    gb = 1e-9
    return [
        ("parameters", f"{parameters / 1e6:.1f} M"),
        ("pieces of the corpus", f"{case.pairs * pair:.3g}"),
        ("real tokens an update", f"{an_update:,.0f}"),
        ("updates, epochs", f"{case.updates:,}, {tokens / case.pairs / pair:.1f}"),
        ("tokens in all", f"{tokens:.3g}"),
        ("FLOPs a pair, forward and backward", f"{3 * forward_flops(case):.3g}"),
        ("FLOPs in all", f"{flops:.3g}"),
        ("devices", f"{case.devices} on {case.machines}"),
        ("an update, computing", f"{1e3 * compute:.0f} ms"),
        ("sent by each device an update", f"{sent * gb:.2f} GB"),
        ("an update, exchanging", f"{1e3 * exchange:.0f} ms"),
        ("hours, if the two overlap", f"{max(compute, exchange) * case.updates / 3600:.1f}"),
        ("memory: weights, gradients, Adam", f"{state * gb:.2f} GB"),
        ("memory: activations", f"{activations(case) * gb:.2f} GB"),
        ("memory: the loss", f"{loss * gb:.2f} GB"),
        ("disk: flat arrays", f"{(4 * pair + 16) * case.pairs * gb:.1f} GB"),
        ("RAM of each process: the epoch's order", f"{orders * gb:.2f} GB"),
        ("reading and checking, one thread", f"{lines / READ / 60:.0f} min"),
        ("tokenising, one thread", f"{lines / TOKENISE / 60:.0f} min"),
    ]


def measure(pairs: int) -> None:
    """Time the order of an epoch for drawn lengths; what it took at its peak."""
    random = np.random.default_rng(1)
    target = np.maximum(2, random.gamma(4, 7, pairs)).astype(np.int64)
    source = np.maximum(1, target + random.normal(0, 0.2 * target)).astype(np.int64)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    sampler = BatchSampler(source, target, batch_tokens=6250, world_size=8)
    made = time.perf_counter()
    n = len(sampler.batches())
    ordered = time.perf_counter()
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    print(
        f"{pairs:,} pairs, {n:,} batches: cut once {made - start:.1f} s, an epoch's order "
        f"{ordered - made:.1f} s, {peak / 1e9:.2f} GB ({peak / pairs:.0f} bytes a pair) above "
        "the lengths"
    )


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", type=int, default=0, metavar="PAIRS")
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure)
        return
    columns = [dict(report(case)) for case in CASES]
    print(f"| | {' | '.join(case.name for case in CASES)} |")
    print("|---|" + "---|" * len(CASES))
    for name in columns[0]:
        print(f"| {name} | {' | '.join(column[name] for column in columns)} |")


if __name__ == "__main__":
    main()
