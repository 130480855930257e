"""Checkpoints survive what happens to files."""

import zipfile

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.errors import TrainingError
from kakehashi.training.checkpoint import (
    AtomicCheckpointIO,
    check_seal,
    load_checkpoint,
    load_weights,
    write_checkpoint,
)


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


def test_code_in_a_checkpoint_is_not_run(tmp_path, capfd):
    class Trap:
        def __reduce__(self):
            return (print, ("sprung",))

    write_checkpoint({"x": Trap()}, tmp_path / "trap.ckpt")  # with the right checksum
    with pytest.raises(TrainingError, match=r"trap\.ckpt is not a whole checkpoint"):
        load_checkpoint(tmp_path / "trap.ckpt")
    assert "sprung" not in capfd.readouterr().out


def test_only_the_models_weights_are_loaded(tmp_path):
    state = {"model.a.weight": torch.ones(2), "metric": torch.zeros(1)}
    AtomicCheckpointIO().save_checkpoint({"state_dict": state}, tmp_path / "x.ckpt")
    assert list(load_weights(tmp_path / "x.ckpt")) == ["a.weight"]


@given(data=st.data())
def test_any_changed_byte_is_noticed(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("sealed") / "x.ckpt"
    write_checkpoint({"w": torch.arange(7)}, path)
    check_seal(path)
    whole = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(whole)
    with pytest.raises(TrainingError, match="not a whole checkpoint"):
        check_seal(path)


def test_other_readers_take_the_file(tmp_path):
    path = tmp_path / "x.ckpt"
    write_checkpoint({"w": torch.arange(7)}, path)
    assert torch.load(path, weights_only=True)["w"].tolist() == list(range(7))
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.comment.startswith(b"sha256 ")


def test_a_file_of_another_program_has_no_checksum(tmp_path):
    torch.save({"w": torch.ones(3)}, tmp_path / "x.ckpt")
    with pytest.raises(TrainingError, match="no checksum at its end"):
        load_checkpoint(tmp_path / "x.ckpt")
