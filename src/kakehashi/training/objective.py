"""Label-smoothed cross-entropy, straight from decoder features, without ever keeping the logits.

The vocabulary projection and its loss are the largest tensors of training by far: [T V], once for
the logits, once for the probabilities, once for the gradient. Here they are made for a few hundred
tokens at a time, and because the gradient of a cross-entropy is known in closed form it is formed
in the same visit, while the chunk is still in the cache.

Shapes: T real target tokens (padding is gone), D model width, V vocabulary.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable


class Loss(NamedTuple):
    """Means over the T tokens, in nats a token."""

    smoothed: Float[Tensor, ""]
    """What is minimised; carries the gradient."""
    nll: Float[Tensor, ""]
    """-log p(token), without smoothing: what perplexity is made of. Carries no gradient."""


def cross_entropy(
    features: Float[Tensor, "T D"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, " V"] | None,
    targets: Int[Tensor, " T"],
    label_smoothing: float = 0.0,
    chunk: int = 256,
) -> Loss:
    """Mean label-smoothed cross-entropy of ``softmax(W h + b)`` (Szegedy et al., 2016, section 7).

    For each token ``(1 - eps) * -log p(y) + eps * mean over V of -log p(v)``, with eps the label
    smoothing; their sum divided by the number of tokens. Under autocast the products are formed
    in its type, everything else in float32.
    """
    losses = _Chunked.apply(  # type: ignore[no-untyped-call]
        features, weight, bias, targets, label_smoothing, chunk
    )
    return Loss(*losses)


class _Chunked(torch.autograd.Function):
    """Forward forms the loss and, where one is wanted, the gradient of its sum over tokens."""

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        eps: float,
        chunk: int,
    ) -> tuple[Tensor, Tensor]:
        device = features.device.type
        low = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
        learning = any(ctx.needs_input_grad[:3])
        with torch.autocast(device, enabled=False):
            visit = _Visit(features, weight, bias, low or weight.dtype, min(chunk, len(targets)))
            for start in range(0, len(targets), chunk):
                visit.forward(slice(start, start + chunk), targets, eps, learning)
            nll, smoothed = visit.losses(eps)
            if learning:
                ctx.has_bias = bias is not None
                ctx.save_for_backward(*visit.gradients(eps))
        ctx.count = max(len(targets), 1)
        ctx.dtypes = (features.dtype, weight.dtype)
        nll = nll / ctx.count
        ctx.mark_non_differentiable(nll)
        return smoothed / ctx.count, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        scale = grad / ctx.count
        of_features, of_weight, of_bias = ctx.saved_tensors
        feature_type, weight_type = ctx.dtypes
        return (
            (of_features * scale).to(feature_type),
            (of_weight * scale).to(weight_type),
            (of_bias * scale).to(weight_type) if ctx.has_bias else None,
            None,
            None,
            None,
        )


class _Visit:
    """Running sums of one pass over the tokens.

    With ``z = W h + b`` and ``p = softmax(z)``, a token's loss is
    ``logsumexp(z) - (1 - eps) z_y - eps mean(z)`` and its gradient with respect to z is
    ``p - (1 - eps) onehot(y) - eps / V``. What has eps / V in it is the same for all tokens but for
    a factor of h, so it is added once, at the end.
    """

    def __init__(
        self, features: Tensor, weight: Tensor, bias: Tensor | None, product: torch.dtype, rows: int
    ) -> None:
        self.features, self.weight, self.bias = features, weight, bias
        self.product = product
        self.exact = torch.promote_types(weight.dtype, torch.float32)
        self.narrow = weight.to(product)
        new = weight.detach().new_empty(0, dtype=self.exact)
        self.buffer = new.new_empty(rows, len(weight))
        self.normaliser, self.chosen = new.new_zeros(()), new.new_zeros(())
        self.of_features = new.new_empty(features.shape)
        self.of_weight = new.new_zeros(weight.shape)
        self.of_bias = new.new_zeros(len(weight))

    def forward(self, rows: slice, targets: Tensor, eps: float, learning: bool) -> None:
        """Add one chunk of tokens."""
        hidden = self.features[rows].to(self.product)
        logits = self._logits(hidden)
        answer = targets[rows].unsqueeze(1)
        largest = logits.amax(1)
        self.chosen += logits.gather(1, answer).sum()
        chances = torch.softmax(logits, 1, out=logits)
        # log p(y) itself may underflow; the largest probability is at least 1 / V
        self.normaliser += (largest - chances.amax(1).log()).sum()
        if not learning:
            return
        chances.scatter_add_(1, answer, chances.new_full(answer.shape, eps - 1.0))
        narrow = chances.to(self.product)
        if self.product == self.exact:
            torch.mm(narrow, self.narrow, out=self.of_features[rows])
            self.of_weight.addmm_(narrow.t(), hidden)
        else:
            self.of_features[rows] = narrow @ self.narrow
            self.of_weight += narrow.t() @ hidden
        if self.bias is not None:
            self.of_bias += chances.sum(0)

    def _logits(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.buffer[: len(hidden)]
        if self.product == self.exact:
            torch.mm(hidden, self.narrow.t(), out=logits)
        else:
            logits.copy_(hidden @ self.narrow.t())
        if self.bias is not None:
            logits += self.bias
        return logits

    def losses(self, eps: float) -> tuple[Tensor, Tensor]:
        """(sum of -log p(y), sum of the smoothed loss)."""
        nll = self.normaliser - self.chosen
        mean = self.features.to(self.exact).sum(0) @ self.weight.to(self.exact).mean(0)
        if self.bias is not None:
            mean = mean + len(self.features) * self.bias.to(self.exact).mean()
        return nll, nll + eps * (self.chosen - mean)

    def gradients(self, eps: float) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of the summed smoothed loss: of features, weight and bias."""
        share = eps / len(self.weight)
        self.of_features -= eps * self.weight.to(self.exact).mean(0)
        self.of_weight -= share * self.features.to(self.exact).sum(0)
        self.of_bias -= share * len(self.features)
        return self.of_features, self.of_weight, self.of_bias
