"""Whole runs on a small corpus of numbers."""

import csv
import math
import os
import signal
from dataclasses import replace
from pathlib import Path

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import Callback

from kakehashi.decoding.greedy import greedy_search
from kakehashi.errors import Stopped
from kakehashi.models.build import build_model
from kakehashi.models.config import TransformerConfig
from kakehashi.training import fit as fit_module
from kakehashi.training.averaging import mean_of_checkpoints
from kakehashi.training.checkpoint import load_checkpoint, load_weights
from kakehashi.training.config import (
    AveragingConfig,
    CallbacksConfig,
    LoggerConfig,
    OptimizerConfig,
    TrainerConfig,
)
from kakehashi.training.fit import FitSettings, fit
from kakehashi.training.schedule import ScheduleConfig

NONE = CallbacksConfig(AveragingConfig("none"))


def model(seed: int = 0, dropout: float = 0.1):
    torch.manual_seed(seed)
    config = TransformerConfig(
        encoder_layers=1,
        decoder_layers=1,
        d_model=16,
        d_feedforward=24,
        n_heads=2,
        dropout=dropout,
    )
    return build_model(config, 17)


def settings(callbacks: CallbacksConfig = NONE, schedule=None, **trainer) -> FitSettings:
    return FitSettings(
        TrainerConfig(**trainer),
        schedule=schedule or ScheduleConfig("linear", warmup_updates=10),
        callbacks=callbacks,
        logger=LoggerConfig(csv=False, tensorboard=False),
        facts={"seed": 0},
    )


def run(numbers, folder: Path, chosen: FitSettings, trained=None):
    trained = trained or model()
    lightning.seed_everything(3, workers=True, verbose=False)
    return trained, fit(trained, numbers, numbers.validator(), chosen, folder)


def equal(a, b) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))


def test_a_time_budget_is_repeated_bit_for_bit_by_its_number_of_updates(numbers, tmp_path):
    average = CallbacksConfig(AveragingConfig("mean", start=0.5))
    chosen = settings(average, max_minutes=0.06, validate_every=0.5)
    timed, fitted = run(numbers, tmp_path / "a", chosen)
    assert fitted.total_updates == fitted.updates >= 10
    again = settings(average, max_updates=fitted.updates, validate_every=0.5)
    counted, repeated = run(numbers, tmp_path / "b", again)
    assert equal(timed, counted)
    assert (repeated.chosen, repeated.validated) == (fitted.chosen, fitted.validated)
    assert [p.bleu for p in repeated.points] == [p.bleu for p in fitted.points]


def test_learns_by_heart(tmp_path, numbers):
    """Eight pairs come out exactly."""
    numbers.train_pairs = numbers.valid = type(numbers.valid)(
        numbers.valid.source_ids[: numbers.valid.source_offsets[8]],
        numbers.valid.source_offsets[:9],
        numbers.valid.target_ids[: numbers.valid.target_offsets[8]],
        numbers.valid.target_offsets[:9],
    )
    numbers.references = numbers.references[:8]
    chosen = settings(max_updates=150, validate_every=1.0)
    chosen = settings(max_updates=150, validate_every=150)
    trained, fitted = run(numbers, tmp_path, chosen, model(dropout=0.0))
    trained.eval()
    for batch in numbers.batches():
        allowed = batch.source_allowed
        found = greedy_search(
            trained,
            trained.encode(batch.source, allowed),
            max_lengths=allowed.sum(1) + 5,
            length_penalty=1.0,
        )
        for row, best in zip(batch.target_output, found, strict=True):
            assert list(best[0].ids) == row[: len(best[0].ids)].tolist()
            assert best[0].finished
    assert fitted.validated.nll < 0.7


@pytest.mark.parametrize("name", ["muon", "adamw", "adam"])
def test_every_optimiser_learns(numbers, tmp_path, name):
    chosen = replace(
        settings(max_updates=60, validate_every=30),
        optimizer=OptimizerConfig(name, learning_rate=0.01),
    )
    _, fitted = run(numbers, tmp_path, chosen)
    assert fitted.points[-1].nll < fitted.points[0].nll < math.log(17) + 1


def test_the_model_ends_with_the_better_weights_and_says_which(numbers, tmp_path):
    for kind in ("none", "mean", "ema", "last_k"):
        callbacks = CallbacksConfig(AveragingConfig(kind, start=0.5, decay=0.5, k=2))
        trained, fitted = run(
            numbers, tmp_path / kind, settings(callbacks, max_updates=12, validate_every=3)
        )
        best = max(fitted.points, key=lambda p: p.bleu)
        assert (fitted.average is None) == (kind == "none")
        if fitted.average is not None and fitted.average.bleu >= best.bleu:
            assert fitted.chosen == "average"
        else:
            assert (fitted.chosen, fitted.chosen_update) == ("best", best.update)
        again = numbers.validator().run(trained, numbers.batches())
        assert again.nll == pytest.approx(fitted.validated.nll)
        assert again.bleu == pytest.approx(fitted.validated.bleu)


@pytest.mark.parametrize("keep", [1, 3])
def test_last_k_keeps_and_averages_the_last_k(numbers, tmp_path, monkeypatch, keep):
    seen = []
    monkeypatch.setattr(
        fit_module,
        "mean_of_checkpoints",
        lambda paths: seen.extend(p.name for p in paths) or mean_of_checkpoints(paths),
    )
    callbacks = CallbacksConfig(AveragingConfig("last_k", k=2), keep=keep)
    run(numbers, tmp_path, settings(callbacks, max_updates=4, validate_every=1))
    assert sorted(seen) == ["update-3.ckpt", "update-4.ckpt"]
    kept = {p.name for p in (tmp_path / "checkpoints").iterdir()}
    newest = [f"update-{update}.ckpt" for update in (2, 3, 4)]
    assert kept == {"best.ckpt", *newest[-max(keep, 2) :]}


def test_a_checkpoint_is_plain_and_tells_of_its_run(numbers, tmp_path):
    trained, _ = run(numbers, tmp_path, settings(max_updates=4, validate_every=4))
    checkpoint = load_checkpoint(tmp_path / "checkpoints" / "update-4.ckpt")
    assert checkpoint["global_step"] == 4
    assert checkpoint["kakehashi"]["seed"] == 0
    assert checkpoint["kakehashi"]["total_updates"] == 4
    assert len(checkpoint["optimizer_states"]) == 1
    weights = load_weights(tmp_path / "checkpoints" / "update-4.ckpt")
    for name, parameter in trained.named_parameters():
        assert torch.equal(weights[name], parameter)


def test_stops_early_when_bleu_no_longer_rises(numbers, tmp_path):
    callbacks = CallbacksConfig(AveragingConfig("none"), patience=2)
    frozen = replace(
        settings(callbacks, max_updates=100, validate_every=2),
        optimizer=OptimizerConfig("adamw", learning_rate=1e-12),
    )
    _, fitted = run(numbers, tmp_path, frozen)
    # the first validation is the best one; two more without a better one end it
    assert [p.update for p in fitted.points] == [2, 4, 6]
    assert (fitted.updates, fitted.total_updates) == (6, 100)


def test_accumulation_counts_updates_not_batches(numbers, tmp_path):
    batches = len(numbers.train_dataloader())
    _, fitted = run(numbers, tmp_path, settings(max_epochs=2, accumulate=4, validate_every=0.5))
    assert fitted.updates == -(-2 * batches // 4)
    assert fitted.epochs == fitted.updates * 4 / batches


def test_curves_are_written(numbers, tmp_path):
    chosen = replace(settings(max_updates=6, validate_every=3, log_every=2), logger=LoggerConfig())
    _, fitted = run(numbers, tmp_path, chosen)
    with (tmp_path / "curves" / "metrics.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    losses = {r["step"]: float(r["train/loss"]) for r in rows if r["train/loss"]}
    bleu = [float(r["valid/bleu"]) for r in rows if r["valid/bleu"]]
    assert set(losses) == {"2", "4", "6"}
    assert bleu == pytest.approx([p.bleu for p in fitted.points], rel=1e-5)
    assert list((tmp_path / "curves").glob("events.out.tfevents.*"))


@pytest.mark.parametrize("precision", ["bf16-mixed", "16-mixed"])
def test_mixed_precision_learns(numbers, tmp_path, precision):
    if precision == "16-mixed" and not torch.cuda.is_available():
        pytest.skip("float16 with gradient scaling needs a GPU")
    _, fitted = run(
        numbers, tmp_path, settings(max_updates=40, validate_every=20, precision=precision)
    )
    assert fitted.points[-1].nll < fitted.points[0].nll


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_ends_the_update_and_saves(numbers, tmp_path, monkeypatch, request, number):
    class Impatient(Callback):
        def on_train_batch_start(self, trainer, module, batch, batch_idx):
            if batch_idx == 9:  # the first of the two batches of an update
                os.kill(os.getpid(), number)

    callbacks = fit_module._Run._callbacks
    monkeypatch.setattr(fit_module._Run, "_callbacks", lambda self: [Impatient(), *callbacks(self)])
    # what runs these tests may be a background job, in which Ctrl-C is ignored, and stays so
    given = signal.signal(number, signal.SIG_DFL)
    request.addfinalizer(lambda: signal.signal(number, given))
    before = signal.getsignal(number)
    with pytest.raises(Stopped) as stopped:
        run(numbers, tmp_path, settings(max_updates=20, validate_every=4))
    assert stopped.value.number == number
    assert (tmp_path / "checkpoints" / "between-5.ckpt").exists()
    assert signal.getsignal(number) == before


def test_nothing_is_written_to_stdout(numbers, tmp_path, capfd):
    run(numbers, tmp_path, settings(max_updates=3, validate_every=3))
    out, err = capfd.readouterr()
    assert out == ""
    assert "update 3: validation BLEU" in err
