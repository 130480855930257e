"""One attention core: a score, a softmax, a mixture of values."""

from kakehashi.attention.core import attend, attention_weights
from kakehashi.attention.layer import Attention
from kakehashi.attention.masks import causal_mask, needed_mask, padding_mask
from kakehashi.attention.memory import Memory
from kakehashi.attention.past import Past
from kakehashi.attention.scores import Additive, Dot, General, ScaledDot, Score, make_score

__all__ = [
    "Additive",
    "Attention",
    "Dot",
    "General",
    "Memory",
    "Past",
    "ScaledDot",
    "Score",
    "attend",
    "attention_weights",
    "causal_mask",
    "make_score",
    "needed_mask",
    "padding_mask",
]
