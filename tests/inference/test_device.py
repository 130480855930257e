"""The device asked for, or why not."""

import pytest
import torch

from kakehashi.errors import ConfigError
from kakehashi.inference.device import choose_device


def test_the_cpu_unless_asked() -> None:
    assert choose_device(None) == choose_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize(("there", "chosen"), [(True, "cuda"), (False, "cpu")])
def test_auto_takes_a_gpu_if_there_is_one(
    monkeypatch: pytest.MonkeyPatch, there: bool, chosen: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    assert choose_device("auto") == torch.device(chosen)


def test_a_gpu_that_is_not_there_and_a_device_that_does_not_exist(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match="no GPU"):
        choose_device("cuda")
    with pytest.raises(ConfigError, match="unknown device 'toaster'"):
        choose_device("toaster")
