"""Runs that are killed, stopped and starved of disk, again and again, and still come out the same.

Each stop happens in a process of its own, at a random update and in a random part of it, with
dropout, subword sampling and gradient accumulation on.
"""

import os
import random
import resource
import signal
import sys
import traceback
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from lightning.pytorch.callbacks import Callback
from tests.training.states import curves, state_of

from kakehashi.data.corpora.base import Corpus, Pairs
from kakehashi.data.module import TranslationData
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.data.tokenizer_config import SamplingConfig
from kakehashi.decoding.config import DecodingConfig
from kakehashi.errors import KakehashiError, Stopped
from kakehashi.models.build import build_model
from kakehashi.models.config import RNNConfig, TransformerConfig
from kakehashi.training import checkpoint as checkpoint_module
from kakehashi.training import fit as fit_module
from kakehashi.training.checkpoint import load_checkpoint
from kakehashi.training.config import CallbacksConfig, LoggerConfig, OptimizerConfig, TrainerConfig
from kakehashi.training.fit import FitSettings, fit
from kakehashi.training.saving import by_update
from kakehashi.training.schedule import ScheduleConfig
from kakehashi.training.validation import Validator

UPDATES = 70
STOPS = 26
"""Of each kind of run; there are four."""
FAULTS = (
    "kill before a batch",
    "kill before the update",
    "kill in a validation",
    "kill while writing",
    "kill before renaming",
    "SIGTERM",
    "SIGINT",
    "SIGTERM in a validation",
    "exception",
    "full disk",
)


@dataclass
class Kind:
    """What is trained."""

    model: str
    workers: int
    corpus: Corpus
    tokenizer: Tokenizer

    def train(self, folder: Path, minutes: float, resume: bool) -> None:
        data = TranslationData(
            self.corpus,
            self.tokenizer,
            root=folder.parent / "data",
            batch_tokens=211,
            seed=3,
            workers=self.workers,
            sampling=SamplingConfig(dropout=0.1),
        )
        torch.manual_seed(5)
        size = self.tokenizer.vocab_size
        if self.model == "rnn":
            model = build_model(
                RNNConfig(d_embedding=8, d_hidden=10, d_attention=7, d_maxout=8), size
            )
        else:
            model = build_model(
                TransformerConfig(
                    encoder_layers=1, decoder_layers=1, d_model=16, d_feedforward=24, n_heads=2
                ),
                size,
            )
        validator = Validator(
            self.corpus.valid.target,
            self.tokenizer.decode,
            "en",
            DecodingConfig(beam=1, max_ratio=0.5, max_extra=1),
        )
        settings = FitSettings(
            TrainerConfig(
                accelerator="cpu", max_updates=UPDATES, validate_every=11, accumulate=2, log_every=3
            ),
            optimizer=OptimizerConfig("muon", learning_rate=0.01),
            schedule=ScheduleConfig("linear", warmup_updates=3),
            callbacks=CallbacksConfig(save_minutes=minutes),
            logger=LoggerConfig(tensorboard=False),
            facts={"seed": 3, "tokenizer_sha256": self.tokenizer.fingerprint},
            seed=3,
        )
        fit(model, data, validator, replace(settings, resume=resume), folder)


class Saboteur(Callback):
    """Brings a fault about in one update."""

    def __init__(self, fault: str, update: int, second: bool) -> None:
        self.fault, self.at, self.second = fault, update, second

    def due(self, trainer) -> bool:
        return trainer.global_step >= self.at

    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        if not self.due(trainer) or batch_idx % 2 != self.second:
            return
        match self.fault:
            case "kill before a batch":
                os.kill(os.getpid(), signal.SIGKILL)
            case "SIGTERM" | "SIGINT":
                os.kill(os.getpid(), getattr(signal, self.fault))
            case "exception":
                raise RuntimeError("something is wrong in the loop")
            case "kill while writing":
                write, written = checkpoint_module._Hashed.write, [0]

                def dying(stream, data):
                    written[0] += len(data)
                    if written[0] > 4000:
                        os.kill(os.getpid(), signal.SIGKILL)
                    return write(stream, data)

                checkpoint_module._Hashed.write = dying
            case "kill before renaming":
                checkpoint_module.os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
            case "full disk":
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))

    def on_before_optimizer_step(self, trainer, module, optimizer):
        if self.due(trainer) and self.fault == "kill before the update":
            os.kill(os.getpid(), signal.SIGKILL)

    def on_validation_batch_end(self, trainer, *_):
        if self.due(trainer) and self.fault == "kill in a validation":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.due(trainer) and self.fault == "SIGTERM in a validation":
            os.kill(os.getpid(), signal.SIGTERM)


def in_a_process(
    kind: Kind, folder: Path, minutes: float, resume: bool, saboteur=None
) -> tuple[int, str]:
    """Train in a forked process; its exit status, negative for a signal, and what it said."""
    # a pipe, which a limit on the size of files does not touch
    end, log = os.pipe()
    child = os.fork()
    if child:
        os.close(log)
        with os.fdopen(end, encoding="utf-8", errors="replace") as stream:
            said = stream.read()
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said
    status = 0
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.stdout = sys.stderr = os.fdopen(2, "w", buffering=1)
        if saboteur is not None:
            callbacks = fit_module._Run._callbacks
            fit_module._Run._callbacks = lambda self: [saboteur, *callbacks(self)]
        kind.train(folder, minutes, resume)
    except Stopped as stopped:
        status = 128 + stopped.number
    except KakehashiError:
        status = 1
    except BaseException:  # noqa: BLE001  whatever it was, it ends with this process
        status = 3
        traceback.print_exc()
    finally:
        os._exit(status)


EXPECTED = {
    "SIGTERM": {143},
    "SIGTERM in a validation": {143},
    "SIGINT": {130},
    "exception": {3},
    "full disk": {1},
}


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("model", ["transformer", "rnn"])
def test_a_run_stopped_again_and_again_is_the_run_that_never_stopped(
    small_corpus, tmp_path, monkeypatch, model, workers
):
    pairs = Pairs(small_corpus.source, small_corpus.target, "small.de, small.en")
    rest = pairs.select(range(119, 132))
    corpus = Corpus("small", "de", "en", pairs.select(range(119)), rest, rest)
    text = [*small_corpus.source, *small_corpus.target]
    kind = Kind(model, workers, corpus, Tokenizer.train(text, vocab_size=401, kind="bpe"))

    whole = tmp_path / "whole"
    with monkeypatch.context() as all_kept:
        all_kept.setattr(fit_module.Checkpoints, "_prune", lambda self: None)
        status, log = in_a_process(kind, whole, 0, False)
        assert status == 0, log
    expected = {
        int(path.stem.split("-")[1]): state_of(path) for path in by_update(whole / "checkpoints")
    }
    assert sorted(expected) == list(range(1, UPDATES + 1))

    chance = random.Random(f"{model} {workers}")
    stops = runs = 0
    while stops < STOPS:
        runs += 1
        folder = tmp_path / f"run-{runs}"
        (folder / "checkpoints").mkdir(parents=True)
        resume = False
        while True:
            there = by_update(folder / "checkpoints")
            reached = int(there[0].stem.split("-")[1]) if there else 0
            fault = chance.choice(FAULTS)
            at = reached + chance.randrange(0, 25)
            saboteur = Saboteur(fault, at, chance.random() < 0.5)
            # a checkpoint after every update, or once in a while
            minutes = chance.choice([0.0, 0.001])
            status, log = in_a_process(kind, folder, minutes, resume, saboteur)
            resume = True
            if status == 0:
                break  # there was no such moment in what was left of the run
            assert status in EXPECTED.get(fault, {-signal.SIGKILL}), f"{fault}: {status}\n{log}"
            stops += 1
            for path in by_update(folder / "checkpoints"):
                update = int(path.stem.split("-")[1])
                assert state_of(path) == expected[update], f"{fault} at {at}: {path}\n{log}"
        final = folder / "checkpoints" / f"update-{UPDATES}.ckpt"
        assert state_of(final) == expected[UPDATES], log
        assert curves(folder) == curves(whole)
        assert (
            load_checkpoint(folder / "checkpoints" / "best.ckpt")["global_step"]
            == (load_checkpoint(whole / "checkpoints" / "best.ckpt")["global_step"])
        )
        names = {path.name for path in (folder / "checkpoints").iterdir()}
        # the best, the newest two, and nothing that was left half-written
        assert {"best.ckpt", final.name} < names
        assert len(names) == 3
    sys.stderr.write(f"{model}, {workers} workers: {stops} stops in {runs} runs, all identical\n")
