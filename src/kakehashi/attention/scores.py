"""The f of ``Attention(Q, K, V) = V Softmax(f(Q, K))``: how well a query fits a key.

Shapes: B batch, H heads, N queries, M keys, D the width in which they meet (d_k).
"""

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Score(nn.Module, ABC):
    """A score function, applied to each head on its own."""

    scale: float | None = None
    """c where f(q, k) is just c k.q, which a fused kernel computes; None for any other f."""

    @abstractmethod
    def forward(
        self, q: Float[Tensor, "B H N Dq"], k: Float[Tensor, "B H M Dk"]
    ) -> Float[Tensor, "B H N M"]:
        """f(q_n, k_m) for every pair."""

    def prepared(self, k: Float[Tensor, "B H M Dk"]) -> tuple["Score", Float[Tensor, "B H M Dk"]]:
        """The same f for these keys in the form, theirs and its own, that is fastest to read often.

        For keys that many queries will come to one after the other, in steps of a search.
        """
        return self, k

    if TYPE_CHECKING:
        __call__ = forward


class Dot(Score):
    """f(Q, K) = K^T Q (Luong et al., 2015)."""

    scale = 1.0

    def forward(
        self, q: Float[Tensor, "B H N D"], k: Float[Tensor, "B H M D"]
    ) -> Float[Tensor, "B H N M"]:
        return q @ k.transpose(-2, -1)


class ScaledDot(Score):
    """f(Q, K) = K^T Q / sqrt(d_k) (Vaswani et al., 2017, equation 1)."""

    def __init__(self, d_k: int) -> None:
        super().__init__()
        self.scale = 1.0 / math.sqrt(d_k)

    def forward(
        self, q: Float[Tensor, "B H N D"], k: Float[Tensor, "B H M D"]
    ) -> Float[Tensor, "B H N M"]:
        assert self.scale is not None
        return (q * self.scale) @ k.transpose(-2, -1)


class General(Score):
    """f(Q, K) = K^T W Q with a matrix W for each head (Luong et al., 2015, "general")."""

    def __init__(self, n_heads: int, d_query: int, d_key: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_heads, d_key, d_query))
        # So large that scores vary as much as the scaled dot's do at the start.
        bound = math.sqrt(3.0 / d_query) / math.sqrt(d_key)
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(
        self, q: Float[Tensor, "B H N Dq"], k: Float[Tensor, "B H M Dk"]
    ) -> Float[Tensor, "B H N M"]:
        return (q @ self.weight.transpose(-2, -1)) @ k.transpose(-2, -1)


class Additive(Score):
    """f(q, k) = w^T tanh(q + k) with a vector w for each head (Bahdanau et al., 2015, A.1.2).

    The paper's W_a and U_a are the attention's W^Q and W^K. Memory grows with N M d_k.
    """

    def __init__(self, n_heads: int, d_k: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_heads, d_k))
        nn.init.uniform_(self.weight, -math.sqrt(3.0 / d_k), math.sqrt(3.0 / d_k))

    def forward(
        self, q: Float[Tensor, "B H N D"], k: Float[Tensor, "B H M D"]
    ) -> Float[Tensor, "B H N M"]:
        met = (q.unsqueeze(-2) + k.unsqueeze(-3)).tanh_()
        return torch.einsum("bhnmd,hd->bhnm", met, self.weight)

    def prepared(self, k: Float[Tensor, "B H M D"]) -> tuple[Score, Float[Tensor, "B H M D"]]:
        """With exponentials of the keys, unless these are too great for them."""
        exact = k.dtype in (torch.float32, torch.float64)
        if not exact or bool(k.detach().abs().amax() > GREATEST_KEY):
            return self, k
        return _ExponentialAdditive(self.weight), (2 * k).exp()


GREATEST_KEY, GREATEST_QUERY = 33.0, 43.0
"""exp(2 x) of neither overflows or vanishes in float32. With keys within theirs a greater query has
tanh(q + k) = +-1 to the last digit all the same."""


class _ExponentialAdditive(Score):
    """The additive score of keys given as exp(2 k), with one exponential a query.

    w^T tanh(q + k) = sum_d w_d - 2 sum_d w_d / (1 + exp(2 q_d) exp(2 k_d)): a product and a
    reciprocal for each pair take a sixth of the time of a hyperbolic tangent.
    """

    def __init__(self, weight: Float[Tensor, "H D"]) -> None:
        super().__init__()
        self.weight = weight
        self.sum = weight.sum(dim=-1)[:, None, None]

    def forward(
        self, q: Float[Tensor, "B H N D"], k: Float[Tensor, "B H M D"]
    ) -> Float[Tensor, "B H N M"]:
        grown = (2 * q.clamp(-GREATEST_QUERY, GREATEST_QUERY)).exp()
        one = grown.new_ones(())
        met = torch.addcmul(one, grown.unsqueeze(-2), k.unsqueeze(-3)).reciprocal_()
        return self.sum - 2 * torch.einsum("bhnmd,hd->bhnm", met, self.weight)


def make_score(name: str, n_heads: int, d_k: int) -> Score:
    """The score called ``name``: dot, scaled_dot, general or additive.

    Raises:
        ValueError: for any other name.
    """
    match name:
        case "dot":
            return Dot()
        case "scaled_dot":
            return ScaledDot(d_k)
        case "general":
            return General(n_heads, d_k, d_k)
        case "additive":
            return Additive(n_heads, d_k)
    raise ValueError(f"unknown score {name!r}: dot, scaled_dot, general or additive")
