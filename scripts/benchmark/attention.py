"""Fused kernel against plain products: forward and backward, and in the steps of a search.

python scripts/benchmark/attention.py [THREADS]

Four heads of 32, milliseconds (the best of four rounds). First sentences of 6 to 128 tokens, about
2,048 a batch, as in training; then one query (greedy) or five (a beam) of each of 64 sentences, of
3 to 400 keys, of which a beam's queries have a mask that is added.
"""

import sys
import time
from collections.abc import Callable

import torch
from torch.nn import functional as F

from kakehashi.attention import ScaledDot, attention_weights
from kakehashi.attention.masks import summand

HEADS, WIDTH, TOKENS, ROUNDS, CALLS, SENTENCES = 4, 32, 2048, 4, 5, 64


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


def compare_step(queries: int, keys: int) -> tuple[float, float]:
    """(fused, plain) for a step of a search."""
    score = ScaledDot(WIDTH)
    q = torch.randn(SENTENCES, queries, HEADS, WIDTH).transpose(1, 2)
    k, v = (torch.randn(SENTENCES, HEADS, keys, WIDTH) for _ in range(2))
    allowed = torch.rand(SENTENCES, 1, queries, keys) < 0.4
    allowed[..., 0] = True
    mask = None if queries == 1 else summand(allowed, q.dtype)

    def fused() -> object:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=score.scale)

    def plain() -> object:
        return attention_weights(score, q, k, mask) @ v

    with torch.inference_mode():
        return milliseconds(fused), milliseconds(plain)


def main() -> None:
    """Print a table."""
    torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    print("training\ntokens  fused ms  plain ms  fused/plain")
    for n in (6, 11, 16, 24, 32, 48, 64, 96, 128):
        fused, plain = compare(n)
        print(f"{n:6}  {fused:8.2f}  {plain:8.2f}  {fused / plain:11.2f}")
    print("\na search\nqueries  keys  fused ms  plain ms  fused/plain")
    for queries, all_keys in ((1, (3, 9, 17, 40, 100, 400)), (5, (5, 17, 45, 85, 115, 400))):
        for keys in all_keys:
            fused, plain = compare_step(queries, keys)
            print(f"{queries:7}  {keys:4}  {fused:8.2f}  {plain:8.2f}  {fused / plain:11.2f}")


if __name__ == "__main__":
    main()
