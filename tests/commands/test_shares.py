"""Runs whose weights are spread over two processes (trainer.strategy=fsdp)."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from tests.commands.test_resuming import start, wait_for
from tests.commands.test_train import QUICK, ROOT, TORCHRUN, files, launch
from tests.training.states import curves, state_of

from kakehashi.training.checkpoint import load_checkpoint
from kakehashi.training.mean import tied_names

WORDS = [
    *QUICK,
    "trainer=updates",
    "trainer.max_updates=8",
    "trainer.validate_every=4",
    "trainer.devices=2",
    "data.batch_tokens=200",
    "model.d_feedforward=25",  # two processes can't share it evenly
    "model.decoder_layers=2",
    "trainer.log_every=3",
    "logger=csv",
]
SCRIPT = [*TORCHRUN, str(ROOT / "scripts" / "train.py")]
LAST = Path("checkpoints/update-8.ckpt")


def points(folder: Path) -> list[float]:
    training = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["training"]
    return [point["nll"] for point in training["points"]]


SHARED = """
import torch, torch.distributed as dist
from kakehashi.models.build import build_model
from kakehashi.models.config import TransformerConfig
from kakehashi.training.sharding import Whole, gathered, shard, share_of, whole

dist.init_process_group("gloo")
torch.manual_seed(5)
config = TransformerConfig(
    encoder_layers=2, decoder_layers=1, d_model=16, d_feedforward=25, n_heads=2
)
model, other = build_model(config, 31), build_model(config, 31)
before = {name: p.detach().clone() for name, p in model.named_parameters()}
shard(model, dist.device_mesh.init_device_mesh("cpu", (2,)))
assert model.output.weight is model.source_embedding.table.weight
for name, p in model.named_parameters():
    rows = len(before[name])
    mine = slice((rows + 1) // 2) if dist.get_rank() == 0 else slice((rows + 1) // 2, None)
    assert torch.equal(p.to_local(), before[name][mine])
    assert torch.equal(share_of(before[name], p).to_local(), before[name][mine])
    assert torch.equal(whole(p), before[name])
table = model.output.weight
written = gathered({"one": table, "tied": table, "count": 3})
assert written["one"] is written["tied"] and written["count"] == 3
assert len(written["one"]) == (31 if dist.get_rank() == 0 else 0)
Whole(other).take(model, torch.device("cpu"))
assert all(torch.equal(p, before[name]) for name, p in other.named_parameters())
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_each_process_keeps_half_of_the_rows(tmp_path):
    script = tmp_path / "shared.py"
    script.write_text(SHARED, encoding="utf-8")
    done = launch(tmp_path, [*TORCHRUN, str(script)])
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_shares_of_weights_are_trained_like_whole_ones(small_corpus, tmp_path):
    words = [*WORDS, *files(small_corpus)]
    words += ["callbacks.averaging.start=0.4", "trainer.deterministic=false"]
    for strategy in ("ddp", "fsdp"):
        more = [f"trainer.strategy={strategy}", f"hydra.run.dir={strategy}"]
        done = launch(tmp_path, [*SCRIPT, *words, *more])
        assert done.returncode == 0, done.stderr
    expected = points(tmp_path / "ddp")
    assert len(expected) == 2 and expected[-1] < expected[0] - 0.05
    assert points(tmp_path / "fsdp") == pytest.approx(expected, abs=1e-5)
    one, other = (load_checkpoint(tmp_path / name / LAST) for name in ("ddp", "fsdp"))
    assert tied_names(one["state_dict"]) == tied_names(other["state_dict"])
    close(one["state_dict"], other["state_dict"])
    close(one["callbacks"]["WeightMean"]["weights"], other["callbacks"]["WeightMean"]["weights"])
    for mine, theirs in zip(one["optimizer_states"], other["optimizer_states"], strict=True):
        for number, state in mine["state"].items():
            close(state, theirs["state"][number])


def close(expected: dict, found: dict) -> None:
    """Adam divides gradients by their own size, so that rounding in small ones shows."""
    assert list(expected) == list(found)
    for name, tensor in expected.items():
        assert tensor.shape == found[name].shape, name
        assert (tensor - found[name]).abs().max() < 1e-3, name
        assert (tensor - found[name]).abs().mean() < 1e-5, name


@pytest.mark.slow
def test_shares_go_on_where_they_were_killed(small_corpus, tmp_path):
    words = [*WORDS, *files(small_corpus), "trainer.strategy=fsdp", "callbacks.save_minutes=0"]
    words += ["callbacks.averaging.start=0.4"]
    done = launch(tmp_path, [*SCRIPT, *words, "hydra.run.dir=whole"])
    assert done.returncode == 0, done.stderr
    words += ["hydra.run.dir=part", "resume=auto"]
    for stop in (3, 5):  # before the mean begins, and in it
        process = start(tmp_path, *words)
        wait_for(tmp_path / "part" / "checkpoints" / f"between-{stop}.ckpt", process)
        if stop == 3:
            process.send_signal(signal.SIGTERM)
        else:
            found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
            os.kill(int(found.split()[-1]), signal.SIGKILL)  # one of the two: the other notices
        process.communicate(timeout=120)
        assert process.returncode == 143 if stop == 3 else process.returncode != 0
    done = launch(tmp_path, [sys.executable, "-m", "kakehashi.commands.main", "train", *words])
    assert done.returncode == 0, done.stderr
    whole, part = tmp_path / "whole", tmp_path / "part"
    assert state_of(whole / LAST) == state_of(part / LAST)
    assert curves(whole) == curves(part)
    for name in ("model/model.safetensors", "test_translations.txt"):
        assert (whole / name).read_bytes() == (part / name).read_bytes()
