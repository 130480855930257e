"""Weights in shares: each process keeps its slice of every weight, of its gradient and moments.

A layer is put together from all processes just before it runs, forwards and backwards, and taken
apart after it; gradients are averaged and cut into slices as they come (FSDP: Zhao et al., 2023, in
torch's second form, ``fully_shard``). A slice takes rows of a matrix, which keeps its shape to all
who ask, so that an optimiser sees the very parameters that it would see on one device.

Files know nothing of shares: what a run writes is what a run of whole weights would write.
"""

from collections.abc import Mapping
from typing import Any

import torch
from lightning.pytorch.strategies import ModelParallelStrategy
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.optim import Optimizer

from kakehashi.models.interface import TranslationModel
from kakehashi.models.transformer import Transformer


def shard(model: Transformer, mesh: DeviceMesh) -> None:
    """Leave each process of the mesh its share of the weights; tied ones stay tied.

    Layer by layer, and what is outside of layers (embeddings, final norms) as one more part, which
    stays whole from ``features`` to the end of the backward pass: the loss reads the embeddings.
    """
    for layer in [*model.encoder, *model.decoder]:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    for name in ("features", "attending_features"):
        register_fsdp_forward_method(model, name)


@torch.no_grad()
def whole(value: Tensor) -> Tensor:
    """A tensor put together from its shares; all processes have to ask. Others stay as they are."""
    return value.full_tensor() if isinstance(value, DTensor) else value


@torch.no_grad()
def share_of(value: Tensor, like: Tensor) -> Tensor:
    """Of a whole tensor the share that this process has of ``like``, on its device."""
    if not isinstance(like, DTensor) or isinstance(value, DTensor):
        return value.to(like.device)
    return distribute_tensor(
        value.detach().to(like.device), like.device_mesh, like.placements, src_data_rank=None
    )


def gathered(values: Mapping[Any, Any]) -> dict[Any, Any]:
    """Whole tensors on the CPU of the first process, to be written; elsewhere empty ones.

    One after the other, so that a device holds one whole tensor at a time. What is the same object
    under two names stays one. Values that have no shares stay as they are.
    """
    found: dict[int, Tensor] = {}
    result = dict(values)
    for name, value in values.items():
        if not isinstance(value, DTensor):
            continue
        if id(value) not in found:
            full = whole(value)
            first = torch.distributed.get_rank() == 0
            found[id(value)] = full.cpu() if first else torch.empty(0)
        result[name] = found[id(value)]
    return result


class Whole:
    """The model that is validated, and kept in the end, while shares of another are trained.

    Search runs a different number of steps in each process, so it can't wait for others at each
    layer. Between validations this model waits in the memory of the CPU.
    """

    def __init__(self, model: TranslationModel[Any]) -> None:
        self.model = model

    @torch.no_grad()
    def take(self, shares: nn.Module, device: torch.device) -> None:
        """Put the weights together on the device; all processes have to."""
        self.model.to(device)
        for mine, theirs in zip(self.model.parameters(), shares.parameters(), strict=True):
            mine.copy_(whole(theirs))

    def release(self) -> None:
        """Leave the device."""
        self.model.to("cpu")


class ShardedStrategy(ModelParallelStrategy):
    """Lightning's way to shares: whole tensors in files, and a share of them taken from files."""

    def __init__(self, processes: int) -> None:
        super().__init__(data_parallel_size=processes, tensor_parallel_size=1)

    @property
    def lightning_restore_optimizer(self) -> bool:
        return True

    def lightning_module_state_dict(self) -> dict[str, Any]:
        assert self.lightning_module is not None
        state = gathered(self.lightning_module.state_dict(keep_vars=True))
        return {name: value.detach() for name, value in state.items()}

    def optimizer_state(self, optimizer: Optimizer) -> dict[str, Any]:
        state = optimizer.state_dict()
        return state | {"state": {n: gathered(values) for n, values in state["state"].items()}}

    def save_checkpoint(
        self, checkpoint: dict[str, Any], filepath: Any, storage_options: Any | None = None
    ) -> None:
        if self.is_global_zero:
            self.checkpoint_io.save_checkpoint(checkpoint, filepath, storage_options)

    def load_checkpoint(
        self, checkpoint_path: Any, weights_only: bool | None = None
    ) -> dict[str, Any]:
        return self.checkpoint_io.load_checkpoint(checkpoint_path, weights_only=weights_only)

    def load_model_state_dict(self, checkpoint: Mapping[str, Any], strict: bool = True) -> None:
        assert self.lightning_module is not None
        now = self.lightning_module.state_dict()
        state = {name: share_of(v, now[name]) for name, v in checkpoint["state_dict"].items()}
        self.lightning_module.load_state_dict(state, strict=strict)

    def load_optimizer_state_dict(self, checkpoint: Mapping[str, Any]) -> None:
        for optimizer, saved in zip(self.optimizers, checkpoint["optimizer_states"], strict=True):
            parameters = [p for group in optimizer.param_groups for p in group["params"]]
            state = {
                number: {
                    # a step count has no shape, and no shares
                    name: share_of(v, parameters[number])
                    if v.shape == parameters[number].shape
                    else v
                    for name, v in values.items()
                }
                for number, values in saved["state"].items()
            }
            optimizer.load_state_dict(saved | {"state": state})
