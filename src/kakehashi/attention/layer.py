"""Attention with its projections: self or cross, one head or many, differ only at the call.

Shapes: B batch, N queries, M memory tokens, H heads, Dk and Dv widths a head.
"""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from kakehashi.attention.core import attend
from kakehashi.attention.dropout import check_probability
from kakehashi.attention.memory import Memory
from kakehashi.attention.scores import make_score


class Attention(nn.Module):
    """``W^O [V_h Softmax(f(Q_h, K_h))]_h`` with ``Q = W^Q X``, ``K = W^K Y``, ``V = W^V Y``.

    Self-attention: Y = X. Cross-attention: Y is another sequence, of any length and width. Four
    projections make it multi-head attention (Vaswani et al., 2017); the additive score with
    identities for W^V and W^O makes it the alignment model of Bahdanau et al. (2015).

    Args:
        d_query: width of X.
        d_memory: width of Y.
        n_heads: heads, each with its own queries, keys and values.
        d_k: width of a head's queries and keys.
        d_v: width of a head's values; None leaves Y as it is (W^V is the identity).
        d_out: width of the result; None leaves the heads side by side (W^O is the identity).
        score: name of f, see ``make_score``.
        bias: whether the projections have one.
        dropout: probability of dropping an attention weight in training.

    Raises:
        ValueError: for an unknown score, a probability outside [0, 1), or heads that cannot share
            raw values evenly.
    """

    def __init__(
        self,
        d_query: int,
        d_memory: int,
        *,
        n_heads: int,
        d_k: int,
        d_v: int | None,
        d_out: int | None,
        score: str = "scaled_dot",
        bias: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if d_v is None and d_memory % n_heads:
            raise ValueError(f"{n_heads} heads cannot share raw values of width {d_memory}")
        self.n_heads = n_heads
        self.dropout = check_probability(dropout)
        self.score = make_score(score, n_heads, d_k)
        self.query = nn.Linear(d_query, n_heads * d_k, bias=bias)
        self.key = nn.Linear(d_memory, n_heads * d_k, bias=bias)
        self.value = None if d_v is None else nn.Linear(d_memory, n_heads * d_v, bias=bias)
        d_context = d_memory if d_v is None else n_heads * d_v
        self.output = None if d_out is None else nn.Linear(d_context, d_out, bias=bias)
        self.widths = [linear.out_features for linear in self._linears()]

    def forward(
        self,
        query: Float[Tensor, "B N Dx"],
        memory: Memory,
        return_weights: bool = False,
    ) -> tuple[Float[Tensor, "B N Do"], Float[Tensor, "B H N M"] | None]:
        """Let each query read the memory; weights are returned only when asked for."""
        return self._read(self._heads(self.query(query)), memory, return_weights)

    def memory(
        self,
        source: Float[Tensor, "B M Dy"],
        allowed: Bool[Tensor, "#B 1 #N M"] | Float[Tensor, "#B 1 #N M"] | None = None,
    ) -> Memory:
        """Project a sequence to keys and values, once for all queries that will read it."""
        value = source if self.value is None else self.value(source)
        return Memory(self._heads(self.key(source)), self._heads(value), allowed)

    def prepared(self, memory: Memory) -> Memory:
        """The memory in the form that many queries, one after the other, read fastest."""
        score, key = self.score.prepared(memory.key)
        return replace(memory, key=key.contiguous(), value=memory.value.contiguous(), score=score)

    def self_forward(
        self,
        x: Float[Tensor, "B N Dx"],
        allowed: Bool[Tensor, "#B 1 #N N"] | None,
        return_weights: bool = False,
    ) -> tuple[Float[Tensor, "B N Do"], Float[Tensor, "B H N N"] | None]:
        """``forward(x, memory(x, allowed))``, with the projections in one product."""
        q, k, v = self.project(x)
        return self._read(q, Memory(k, v, allowed), return_weights)

    def joint(self) -> tuple[Float[Tensor, "O Dx"], Float[Tensor, " O"] | None]:
        """Weight and bias of queries, keys and values one upon another, for ``project``."""
        linears = self._linears()
        weight = torch.cat([linear.weight for linear in linears])
        bias = None
        if self.query.bias is not None:
            bias = torch.cat([linear.bias for linear in linears])
        return weight, bias

    def project(
        self, x: Float[Tensor, "B N Dx"], joint: tuple[Tensor, Tensor | None] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values [B H N .] of the same sequence, in one matrix product.

        Args:
            x: the sequence.
            joint: what ``joint`` gives, where it is used many times.
        """
        weight, bias = self.joint() if joint is None else joint
        parts = F.linear(x, weight, bias).split_with_sizes(self.widths, -1)
        value = x if self.value is None else parts[2]
        return self._heads(parts[0]), self._heads(parts[1]), self._heads(value)

    def _linears(self) -> list[nn.Linear]:
        return [self.query, self.key] + ([] if self.value is None else [self.value])

    def read(self, q: Float[Tensor, "B H N Dk"], memory: Memory) -> Float[Tensor, "B N Do"]:
        """The result for queries that are projected already."""
        return self._read(q, memory, return_weights=False)[0]

    def _read(
        self, q: Tensor, memory: Memory, return_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        context, weights = attend(
            self.score if memory.score is None else memory.score,
            q,
            memory.key,
            memory.value,
            memory.allowed,
            dropout=self.dropout if self.training else 0.0,
            return_weights=return_weights,
        )
        merged = context.transpose(1, 2).flatten(2)
        result: Tensor = merged if self.output is None else self.output(merged)
        return result, weights

    def _heads(self, x: Float[Tensor, "B N HD"]) -> Float[Tensor, "B H N D"]:
        return x.view(x.shape[0], x.shape[1], self.n_heads, -1).transpose(1, 2)
