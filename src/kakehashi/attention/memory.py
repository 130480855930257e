"""What is attended to: keys and values, projected once and handed in, never kept on a module.

Shapes: B sentences, H heads, M remembered tokens, Dk and Dv widths of keys and values.
What grows while a search goes on is the ``Past``.
"""

from dataclasses import dataclass, replace

from jaxtyping import Bool, Float, Int
from torch import Tensor

from kakehashi.attention.scores import Score


@dataclass(frozen=True)
class Memory:
    """Keys and values of a sequence, and which of its places may be attended to."""

    key: Float[Tensor, "B H M Dk"]
    value: Float[Tensor, "B H M Dv"]
    allowed: Bool[Tensor, "#B 1 #N M"] | Float[Tensor, "#B 1 #N M"] | None = None
    """True = may be attended to, or the ``summand`` that says the same; None allows all."""
    score: Score | None = None
    """What compares queries with keys in another form than they were projected in."""

    def select(self, rows: Int[Tensor, " b"]) -> "Memory":
        """The memory of the given rows, in their order."""
        allowed = self.allowed
        if allowed is not None and allowed.shape[0] == self.key.shape[0]:
            allowed = allowed.index_select(0, rows)
        key, value = self.key.index_select(0, rows), self.value.index_select(0, rows)
        return replace(self, key=key, value=value, allowed=allowed)
