"""`kakehashi train data.streaming=true` as it is typed."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kakehashi.data.ledger import Ledger
from kakehashi.inference.bundle import load_bundle
from kakehashi.inference.folder import training_sentences

ROOT = Path(__file__).resolve().parents[2]
WORDS = [
    "data=hub",
    "name=streamed",
    "data.hub_path=pairs",
    "data.streaming=true",
    "data.source_language=de",
    "data.target_language=en",
    "data.valid_size=6",
    "data.test_size=9",
    "data.buffer=60",
    "data.batch_tokens=300",
    "tokenizer.vocab_size=400",
    "model.d_model=16",
    "model.d_feedforward=24",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.n_heads=2",
    "trainer=updates",
    "trainer.validate_every=6",
    "logger=none",
    "decoding=greedy",
    "decoding.max_ratio=1.0",
    "decoding.max_extra=1",
    "trainer.accelerator=cpu",
]


def command(*words: str) -> list[str]:
    return [sys.executable, str(ROOT / "scripts" / "train.py"), *words]


def environment(folder: Path) -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "HF_HOME": str(folder / "hub")}


def train(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command(*words),
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        encoding="utf-8",
        timeout=900,
        check=False,
    )


@pytest.fixture
def folder(small_corpus, tmp_path: Path) -> Path:
    """Two shards of pairs, of which one has a blank side."""
    rows = list(zip(small_corpus.source, small_corpus.target, strict=True))
    rows[77] = rows[77][0], "  "
    (tmp_path / "pairs").mkdir()
    for k, part in enumerate((rows[:70], rows[70:])):
        lines = [json.dumps({"de": source, "en": target}) for source, target in part]
        (tmp_path / "pairs" / f"train-{k}.jsonl").write_text("\n".join(lines))
    return tmp_path


def test_a_run_on_a_stream(folder: Path, small_corpus, kakehashi, monkeypatch) -> None:
    monkeypatch.chdir(folder)
    words = ["trainer.max_updates=6", "data.batch_tokens=1000", "data.workers=1"]
    done = kakehashi("train", *WORDS, *words)
    assert done.status == 0, done.err
    out = done.out.decode()
    run = folder / "runs" / "streamed" / "latest"
    corpus = json.loads((run / "summary.json").read_text(encoding="utf-8"))["corpus"]
    seen = corpus["stream"]["seen"]
    assert (corpus["stream"]["shards"], corpus["stream"]["sample"]) == (2, 60)
    counts = seen["counts"]
    # Six updates of two batches take more than the 132 pairs: the second epoch has begun.
    assert counts["read"] == corpus["pairs_read"]["train"] == 132
    assert counts["held_out"] == 15
    assert counts["kept"] == corpus["training_pairs"]
    assert seen["pairs"] > counts["kept"]
    assert seen["epochs"] == seen["pairs"] / counts["kept"]
    entries = list(Ledger.read(run / "ledger.jsonl"))
    left_out = [entry for entry in entries if entry.action == "left out"]
    assert counts["read"] == counts["kept"] + counts["held_out"] + len(left_out)
    assert len(left_out) == len({(entry.file, entry.line) for entry in left_out})
    blank = [entry for entry in entries if entry.reason == "blank side"]
    assert [(e.file, e.line) for e in blank] == [("pairs (train), shard 2 of 2", 8)]
    assert sum(total["pairs"] for total in corpus["ledger"]) == len(entries)

    card = (run / "model" / "README.md").read_text(encoding="utf-8")
    for text in (out, card):
        assert "held-out splits come from 60 pairs of it" in text
    assert f"Of 132 pairs read: {counts['kept']} to train on, 15 held out for valid" in out
    assert f"{seen['pairs']:,} pairs of a stream ({seen['epochs']:.1f} epochs)" in out
    assert "come from 60 of its pairs" in done.err
    assert "none is silenced" in done.err
    # What it was trained on is not known afterwards, and nothing of it was kept.
    assert training_sentences(run) is None
    assert load_bundle(run).model.output.silence.count_nonzero() == 0
    kept = [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "pairs"]
    assert not [path for path in kept if small_corpus.target[131].encode() in path.read_bytes()]


@pytest.mark.slow
@pytest.mark.parametrize("shards", [2, 1])
def test_two_processes_share_a_stream(folder: Path, shards: int) -> None:
    if shards == 1:
        (folder / "pairs" / "train-1.jsonl").unlink()
    words = ["trainer.devices=2", "trainer.strategy=ddp", "trainer.deterministic=false"]
    done = train(folder, *WORDS, *words, "trainer.max_updates=12", "data.buffer=40")
    assert done.returncode == 0, done.stderr
    run = folder / "runs" / "streamed" / "latest"
    corpus = json.loads((run / "summary.json").read_text(encoding="utf-8"))["corpus"]
    counts = corpus["stream"]["seen"]["counts"]
    ledgers = [Ledger.read(run / name) for name in ("ledger.jsonl", "ledger-1.jsonl")]
    left_out = [e for ledger in ledgers for e in ledger if e.action == "left out"]
    assert counts["read"] == (132 if shards == 2 else 70)
    assert counts["read"] == counts["kept"] + counts["held_out"] + len(left_out)
    assert "ledger-1.jsonl" in done.stdout or not left_out


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_a_run_on_a_stream_that_was_killed_goes_on_exactly(folder: Path, processes: int) -> None:
    words = [*WORDS, "trainer.max_updates=40", "trainer.validate_every=20", "data.buffer=40"]
    words.append("data.workers=1")
    if processes == 2:
        words += ["trainer.devices=2", "trainer.strategy=ddp", "trainer.deterministic=false"]
    done = train(folder, *words, "hydra.run.dir=whole")
    assert done.returncode == 0, done.stderr
    killed = subprocess.Popen(
        command(*words, "hydra.run.dir=killed"),
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    deadline = time.monotonic() + 300
    while not list(folder.glob("killed/checkpoints/update-20.ckpt")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    killed.kill()
    killed.communicate()  # until the worker has noticed, too, and lets go of the run's lock
    assert not (folder / "killed" / "summary.json").exists()
    done = train(folder, "resume=killed")
    assert done.returncode == 0, done.stderr
    assert "going on after update 20" in done.stderr
    ledgers = ["ledger.jsonl", "ledger-1.jsonl"][:processes]
    for name in ("model/model.safetensors", *ledgers):
        assert (folder / "whole" / name).read_bytes() == (folder / "killed" / name).read_bytes()
    seen = [
        json.loads((folder / run / "summary.json").read_text(encoding="utf-8"))["corpus"]["stream"]
        for run in ("whole", "killed")
    ]
    assert seen[0] == seen[1]
