"""One attention core: a score, a softmax, a mixture of values."""

from kakehashi.attention.core import attend, attention_weights
from kakehashi.attention.layer import Attention
from kakehashi.attention.masks import causal_mask, padding_mask
from kakehashi.attention.memory import Cache, Memory
from kakehashi.attention.scores import Additive, Dot, General, ScaledDot, Score, make_score

__all__ = [
    "Additive",
    "Attention",
    "Cache",
    "Dot",
    "General",
    "Memory",
    "ScaledDot",
    "Score",
    "attend",
    "attention_weights",
    "causal_mask",
    "make_score",
    "padding_mask",
]
