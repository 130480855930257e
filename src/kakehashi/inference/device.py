"""Where a model computes."""

import torch

from kakehashi.errors import ConfigError


def choose_device(name: str | None) -> torch.device:
    """The device of that name; ``auto`` is the first GPU if there is one, None is the CPU.

    Raises:
        ConfigError: for an unknown device, or one that this machine does not have.
    """
    if name is None:
        return torch.device("cpu")
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f"unknown device {name!r}; there are cpu, cuda and auto") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError("no GPU can be used here; take --device cpu, or auto to decide by itself")
    return device
