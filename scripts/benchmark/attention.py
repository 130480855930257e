"""Fused kernel against plain products, forward and backward, for sentences of 6 to 128 tokens.

python scripts/benchmark/attention.py [THREADS]

Four heads of 32, about 2,048 tokens a batch, milliseconds (the best of four rounds).
"""

import sys
import time
from collections.abc import Callable

import torch
from torch.nn import functional as F

from kakehashi.attention import ScaledDot, attention_weights

HEADS, WIDTH, TOKENS, ROUNDS, CALLS = 4, 32, 2048, 4, 5


def milliseconds(call: Callable[[], object]) -> float:
    """Of one call."""
    for _ in range(CALLS):
        call()
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, (time.perf_counter() - start) / CALLS)
    return 1e3 * best


def compare(n: int) -> tuple[float, float]:
    """(fused, plain) for sentences of n tokens, the last one padding."""
    batch, score = TOKENS // n, ScaledDot(WIDTH)
    q, k, v = (
        torch.randn(batch, n, HEADS, WIDTH).transpose(1, 2).requires_grad_() for _ in range(3)
    )
    allowed = torch.ones(batch, 1, 1, n, dtype=torch.bool)
    allowed[..., -1] = False
    gradient = torch.randn(batch, HEADS, n, WIDTH)

    def fused() -> None:
        context = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, scale=score.scale)
        context.backward(gradient)

    def plain() -> None:
        (attention_weights(score, q, k, allowed) @ v).backward(gradient)

    return milliseconds(fused), milliseconds(plain)


def main() -> None:
    """Print a table."""
    torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    print("tokens  fused ms  plain ms  fused/plain")
    for n in (6, 11, 16, 24, 32, 48, 64, 96, 128):
        fused, plain = compare(n)
        print(f"{n:6}  {fused:8.2f}  {plain:8.2f}  {fused / plain:11.2f}")


if __name__ == "__main__":
    main()
