"""What is taken for a checkpoint, and what is not: above all no program."""

import os
import pickle
from pathlib import Path

import pytest
import torch

from kakehashi.errors import TrainingError
from kakehashi.training.checkpoint import write_checkpoint
from kakehashi.training.snapshot import open_snapshot, read_progress

CHECKPOINT = {
    "global_step": 7,
    "state_dict": {"model.w": torch.ones(2), "metric": torch.ones(1)},
    "kakehashi": {"seed": 3, "total_updates": 20},
    "callbacks": {
        "Checkpoints": {"best": {"update": 5, "nll": 1.0, "bleu": 12.5}},
        "Other": {"seconds": 3.0},
    },
}


def save(path: Path, content: object) -> Path:
    write_checkpoint(content, path)
    return path


class Trap:
    """Pickled, it is an order to make a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("form", ["zip", "legacy", "pickle"])
@pytest.mark.parametrize("read", [open_snapshot, read_progress])
def test_a_planted_program_is_refused_and_does_not_run(tmp_path, form, read):
    trap, path = tmp_path / "sprung", tmp_path / "update-7.ckpt"
    content = CHECKPOINT | {"kakehashi": {"seed": Trap(trap)}}
    if form == "pickle":
        path.write_bytes(pickle.dumps(Trap(trap)))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=form == "zip")
    with pytest.raises(TrainingError, match=r"update-7\.ckpt"):
        read(path)
    assert not trap.exists()
    pickle.loads(pickle.dumps(Trap(trap)))  # noqa: S301
    assert trap.exists(), "the trap was none"


def test_a_snapshot_holds_the_model_and_nothing_else(tmp_path):
    found = open_snapshot(save(tmp_path / "a.ckpt", CHECKPOINT))
    assert found.update == 7
    assert set(found.weights) == {"w"}
    assert found.facts["seed"] == 3


def test_how_far_a_run_has_come(tmp_path):
    progress = read_progress(save(tmp_path / "a.ckpt", CHECKPOINT))
    assert (progress.update, progress.total_updates, progress.best_bleu) == (7, 20, 12.5)
    progress = read_progress(save(tmp_path / "b.ckpt", CHECKPOINT | {"callbacks": {}}))
    assert progress.best_bleu is None


@pytest.mark.parametrize("content", [{"state_dict": {}}, [1, 2], torch.ones(2)])
@pytest.mark.parametrize("read", [open_snapshot, read_progress])
def test_another_file_of_torch_is_no_checkpoint(tmp_path, content, read):
    with pytest.raises(TrainingError, match=r"a\.ckpt is not a checkpoint of `kakehashi train`"):
        read(save(tmp_path / "a.ckpt", content))


def test_a_file_that_is_cut_short_is_refused(tmp_path):
    path = save(tmp_path / "a.ckpt", CHECKPOINT)
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(TrainingError, match=r"a\.ckpt"):
        open_snapshot(path)
