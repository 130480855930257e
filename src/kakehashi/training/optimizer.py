"""Optimisers: Adam, AdamW, and Muon for the matrices of the layers with AdamW for the rest."""

import math
from collections.abc import Callable, Iterable
from typing import Any, overload

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.optim import Adam, AdamW, Optimizer

from kakehashi.training.config import OptimizerConfig
from kakehashi.training.sharding import share_of, whole

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
"""Jordan's quintic: it sends every singular value in (0, 1] to somewhere near 1, and fast."""


def build_optimizer(model: nn.Module, config: OptimizerConfig, fused: bool = True) -> Optimizer:
    """One optimiser over all of a model's parameters.

    ``fused`` runs Adam's arithmetic as one kernel (a third of the time on a CPU); gradient scaling
    for float16 together with clipping is what it cannot do.
    """
    matrices, tables, vectors = split_parameters(model)
    adam: dict[str, Any] = {
        "lr": config.learning_rate,
        "betas": (config.beta1, config.beta2),
        "eps": config.epsilon,
        "fused": fused,
    }

    def groups(decayed: list[nn.Parameter]) -> list[dict[str, Any]]:
        pairs = ((decayed, config.weight_decay), (vectors, 0.0))
        return [{"params": part, "weight_decay": decay} for part, decay in pairs if part]

    if config.name == "adam":
        return Adam(groups(matrices + tables), **adam)
    if config.name == "adamw" or not matrices:
        return AdamW(groups(matrices + tables), **adam)
    return Muon(
        matrices,
        AdamW(groups(tables), **adam),
        learning_rate=config.muon_learning_rate,
        momentum=config.momentum,
        weight_decay=config.muon_weight_decay,
        steps=config.newton_schulz_steps,
    )


def split_parameters(
    model: nn.Module,
) -> tuple[list[nn.Parameter], list[nn.Parameter], list[nn.Parameter]]:
    """(hidden matrices, embedding and output tables, everything else), each parameter once.

    A table maps a vocabulary, so its rows are updated by how often a word occurs; orthogonalising
    it would mix them. Gains, biases and other vectors have no singular values to speak of.
    """
    in_table = {
        id(p)
        for name, module in model.named_modules()
        if isinstance(module, nn.Embedding) or name == "output"
        for p in module.parameters(recurse=False)
    }
    matrices: list[nn.Parameter] = []
    tables: list[nn.Parameter] = []
    vectors: list[nn.Parameter] = []
    for parameter in model.parameters():
        if parameter.ndim != 2 or 1 in parameter.shape:
            vectors.append(parameter)
        elif id(parameter) in in_table:
            tables.append(parameter)
        else:
            matrices.append(parameter)
    return matrices, tables, vectors


class Muon(Optimizer):
    """Muon (Jordan et al., 2024) on matrices, and a given AdamW on everything else, as one.

    A matrix moves along its Nesterov momentum made orthogonal:
    ``M <- momentum M + (1 - momentum) G;  W <- W - lr sqrt(max(1, rows / columns)) O(G + momentum
    (M - G))``, with O the nearest (semi-)orthogonal matrix, found by Newton-Schulz iterations.

    ``torch.optim.Muon`` iterates in bfloat16, matrix by matrix. On CPUs without bfloat16 matrix
    units that is a hundred times slower than float32, and small matrices want to be stacked: here
    all of one shape go through together, in float32 on a CPU.
    """

    def __init__(
        self,
        matrices: Iterable[nn.Parameter],
        rest: AdamW,
        *,
        learning_rate: float = 0.02,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
        steps: int = 5,
    ) -> None:
        defaults = {
            "lr": learning_rate,
            "momentum": momentum,
            "weight_decay": weight_decay,
            "steps": steps,
        }
        super().__init__([{"params": list(matrices), "kind": "muon"}], defaults)
        self.rest = rest
        for group in rest.param_groups:
            # shared, so that a scheduler that sets the rate here sets it there
            self.param_groups.append(group)
        self._share()

    def _share(self) -> None:
        """One state and one list of groups for both optimisers: they save and load as one."""
        self.rest.param_groups = [g for g in self.param_groups if "kind" not in g]
        self.rest.state = self.state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self._share()

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """One update of everything that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            if "kind" in group:
                self._step_matrices(group)
        self.rest.step()
        return loss

    def _step_matrices(self, group: dict[str, Any]) -> None:
        for parameters in _stacks(p for p in group["params"] if p.grad is not None):
            gradients = [p.grad for p in parameters if p.grad is not None]
            for p in parameters:
                if "momentum" not in self.state[p]:
                    self.state[p]["momentum"] = torch.zeros_like(p)
            buffers = [self.state[p]["momentum"] for p in parameters]
            torch._foreach_lerp_(buffers, gradients, 1.0 - group["momentum"])
            ahead = torch._foreach_lerp(gradients, buffers, group["momentum"])
            stack = torch.stack([whole(matrix) for matrix in ahead])
            directions = orthogonalise(stack, group["steps"]).unbind()
            shares = [share_of(d, p) for d, p in zip(directions, parameters, strict=True)]
            rows, columns = parameters[0].shape
            if group["weight_decay"]:
                torch._foreach_mul_(parameters, 1.0 - group["lr"] * group["weight_decay"])
            scale = math.sqrt(max(1.0, rows / columns))
            torch._foreach_add_(parameters, shares, alpha=-group["lr"] * scale)


def _stacks(parameters: Iterable[Tensor]) -> list[list[Tensor]]:
    """By shape; what is in shares alone, so that a device holds one whole matrix at a time."""
    stacks: dict[tuple[torch.Size, int], list[Tensor]] = {}
    for place, parameter in enumerate(parameters):
        alone = place if isinstance(parameter, DTensor) else -1
        stacks.setdefault((parameter.shape, alone), []).append(parameter)
    return list(stacks.values())


def orthogonalise(matrices: Tensor, steps: int = 5) -> Tensor:
    """Near-orthogonal versions of a stack of matrices [S R C]: ``U V^T`` of each ``U Sigma V^T``.

    ``X <- (a I + b A + c A^2) X`` with ``A = X X^T``, from X scaled to a Frobenius norm of 1. The
    product of the polynomials is gathered in the smaller of the two dimensions, where
    ``A <- P A P``, and meets X once, at the end. Singular values end between about 0.7 and 1.2,
    but for those below a few thousandths of the norm.
    """
    wide = matrices.mT if matrices.shape[1] > matrices.shape[2] else matrices
    wide = wide.bfloat16() if wide.is_cuda else wide
    wide = wide / (wide.flatten(1).norm(dim=1)[:, None, None] + 1e-7)
    a, b, c = NEWTON_SCHULZ
    gram = torch.bmm(wide, wide.mT)
    product = None
    for step in range(steps):
        polynomial = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        polynomial.diagonal(dim1=1, dim2=2).add_(a)
        product = polynomial if product is None else torch.bmm(polynomial, product)
        if step < steps - 1:
            gram = torch.bmm(torch.bmm(polynomial, gram), polynomial)
    result = wide if product is None else torch.bmm(product, wide)
    result = result.to(matrices.dtype)
    return result.mT if matrices.shape[1] > matrices.shape[2] else result
