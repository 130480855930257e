"""Checkpoints survive what happens to files."""

import pytest
import torch

from kakehashi.errors import TrainingError
from kakehashi.training.checkpoint import AtomicCheckpointIO, load_checkpoint, load_weights


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "last.ckpt"
    AtomicCheckpointIO().save_checkpoint({"n": 1}, path)

    def full_disk(checkpoint, stream):
        stream.write(b"half of")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full_disk)
    with pytest.raises(TrainingError, match=r"last\.ckpt.*No space left"):
        AtomicCheckpointIO().save_checkpoint({"n": 2}, path)
    monkeypatch.undo()
    assert load_checkpoint(path) == {"n": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["last.ckpt"]


def test_a_file_cut_short_is_refused(tmp_path):
    path = tmp_path / "best.ckpt"
    AtomicCheckpointIO().save_checkpoint({"w": torch.ones(1000)}, path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(TrainingError, match=r"best\.ckpt is not a whole checkpoint"):
        load_checkpoint(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(TrainingError, match=r"none\.ckpt does not exist"):
        load_checkpoint(tmp_path / "none.ckpt")


def test_code_in_a_checkpoint_is_not_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return (print, ("sprung",))

    torch.save({"x": Trap()}, tmp_path / "trap.ckpt")
    with pytest.raises(TrainingError, match=r"trap\.ckpt"):
        load_checkpoint(tmp_path / "trap.ckpt")


def test_only_the_models_weights_are_loaded(tmp_path):
    state = {"model.a.weight": torch.ones(2), "metric": torch.zeros(1)}
    AtomicCheckpointIO().save_checkpoint({"state_dict": state}, tmp_path / "x.ckpt")
    assert list(load_weights(tmp_path / "x.ckpt")) == ["a.weight"]
