"""A model's tensors as the bytes of a safetensors file, tied tensors once."""

from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from kakehashi.errors import BundleError
from kakehashi.models.interface import TranslationModel


def _own_tensors(model: TranslationModel[Any]) -> dict[str, Tensor]:
    """The state by name; a tensor that several names share stands under the first of them."""
    seen: set[int] = set()
    own = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            own[name] = tensor
    return own


def dump_weights(model: TranslationModel[Any]) -> bytes:
    """The file's content."""
    tensors = {n: t.detach().cpu().contiguous() for n, t in _own_tensors(model).items()}
    return safetensors.torch.save(tensors, metadata={"format": "pt"})


def load_weights(model: TranslationModel[Any], content: bytes, name: str) -> None:
    """Fill a model, in place, so that tied tensors stay tied.

    Args:
        model: of the shape that the bundle's config.json describes.
        content: the bytes of model.safetensors.
        name: what to call the file in an error.

    Raises:
        BundleError: when the bytes are no safetensors file (nothing else is ever opened: no
            pickle), or a tensor is missing, unexpected or of another shape.
    """
    try:
        tensors = safetensors.torch.load(content)
    except (SafetensorError, ValueError, KeyError) as error:
        raise BundleError(
            f"{name} is not a safetensors file, or is damaged ({error}); copy the folder again"
        ) from error
    own = _own_tensors(model)
    if missing := sorted(set(own) - set(tensors)):
        raise BundleError(f"{name} lacks tensors that config.json calls for: {_some(missing)}")
    if unexpected := sorted(set(tensors) - set(own)):
        raise BundleError(f"{name} has tensors unknown to config.json: {_some(unexpected)}")
    for key, tensor in own.items():
        if tensor.shape != tensors[key].shape:
            raise BundleError(
                f"{name}: {key} has shape {list(tensors[key].shape)}, config.json makes it "
                f"{list(tensor.shape)}; the two files are of different models"
            )
    with torch.no_grad():
        for key, tensor in own.items():
            tensor.copy_(tensors[key])


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more
