"""Runs with hardly any data, and runs that learn nothing."""

import math
from dataclasses import replace
from pathlib import Path

import lightning
import pytest
import torch

from kakehashi.errors import KakehashiError
from kakehashi.models.build import build_model
from kakehashi.models.config import TransformerConfig
from kakehashi.training.callbacks import Point
from kakehashi.training.checkpoint import load_checkpoint
from kakehashi.training.config import (
    AveragingConfig,
    CallbacksConfig,
    LoggerConfig,
    OptimizerConfig,
    TrainerConfig,
)
from kakehashi.training.doubts import doubts
from kakehashi.training.fit import FitSettings, fit
from kakehashi.training.schedule import ScheduleConfig
from kakehashi.training.validation import Validated


def run(data, folder: Path, patience=None, average="none", rate=0.01, **trainer):
    torch.manual_seed(0)
    config = TransformerConfig(
        encoder_layers=1, decoder_layers=1, d_model=16, d_feedforward=24, n_heads=2
    )
    model = build_model(config, 17)
    settings = FitSettings(
        TrainerConfig(**trainer),
        optimizer=OptimizerConfig("adamw", learning_rate=rate),
        schedule=ScheduleConfig("constant", warmup_updates=1),
        callbacks=CallbacksConfig(AveragingConfig(average, start=0.0), patience=patience),
        logger=LoggerConfig(csv=False, tensorboard=False),
    )
    lightning.seed_everything(3, workers=True, verbose=False)
    return model, fit(model, data, data.validator(), settings, folder)


def only(corpus, n: int):
    ends = corpus.source_offsets[n], corpus.target_offsets[n]
    return type(corpus)(
        corpus.source_ids[: ends[0]],
        corpus.source_offsets[: n + 1],
        corpus.target_ids[: ends[1]],
        corpus.target_offsets[: n + 1],
    )


@pytest.mark.parametrize("split", ["train", "valid"])
def test_nothing_to_train_on_or_to_validate_with_is_said(numbers, tmp_path, split):
    name = "train_pairs" if split == "train" else "valid"
    setattr(numbers, name, only(numbers.valid, 0))
    with pytest.raises(KakehashiError, match=f"{split} has no pairs"):
        run(numbers, tmp_path, max_updates=2)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("n", [1, 3])
def test_a_validation_set_smaller_than_a_batch(numbers, tmp_path, n):
    numbers.valid, numbers.references = only(numbers.valid, n), numbers.references[:n]
    model, fitted = run(numbers, tmp_path, average="mean", max_updates=4, validate_every=2)
    assert [point.update for point in fitted.points] == [2, 4]
    assert math.isfinite(fitted.validated.nll)
    again = numbers.validator().run(model, numbers.batches())
    assert again.nll == pytest.approx(fitted.validated.nll)


def test_more_to_accumulate_than_an_epoch_holds(numbers, tmp_path):
    numbers.train_pairs = only(numbers.valid, 4)
    assert len(numbers.train_dataloader()) < 64
    _, fitted = run(numbers, tmp_path, max_updates=3, validate_every=3, accumulate=64)
    assert (fitted.updates, [point.update for point in fitted.points]) == (3, [3])


@pytest.fixture
def scoreless(numbers, monkeypatch):
    """Translations that share nothing with any reference."""
    numbers.references = ["another thing"] * len(numbers.references)
    return numbers


def test_without_any_bleu_the_lowest_nll_is_kept_and_the_summary_says_so(scoreless, tmp_path):
    model, fitted = run(scoreless, tmp_path, max_updates=8, validate_every=2)
    nll = [point.nll for point in fitted.points]
    assert all(point.bleu == 0 for point in fitted.points)
    assert nll[0] > min(nll)
    best = fitted.points[nll.index(min(nll))]
    assert (fitted.chosen, fitted.chosen_update) == ("best", best.update)
    checkpoint = load_checkpoint(tmp_path / "checkpoints" / "best.ckpt")
    assert checkpoint["global_step"] == best.update
    assert scoreless.validator().run(model, scoreless.batches()).nll == pytest.approx(min(nll))
    (warning,) = fitted.warnings
    assert warning.startswith("BLEU was 0 in all 4 validations")


def test_a_run_without_bleu_that_gets_no_better_stops_early(scoreless, tmp_path):
    _, fitted = run(scoreless, tmp_path, patience=2, rate=1e-12, max_updates=50, validate_every=1)
    assert fitted.updates == 3


def test_a_run_without_bleu_that_still_learns_does_not(scoreless, tmp_path):
    _, fitted = run(scoreless, tmp_path, patience=1, max_updates=6, validate_every=1)
    assert fitted.updates == 6


def test_an_nll_that_is_no_number_still_leaves_a_checkpoint(scoreless, tmp_path, monkeypatch):
    validator = type(scoreless.validator())
    result = validator.result
    monkeypatch.setattr(
        validator, "result", lambda self, tallies: replace(result(self, tallies), nll=math.nan)
    )
    _, fitted = run(scoreless, tmp_path, patience=2, max_updates=9, validate_every=1)
    assert (tmp_path / "checkpoints" / "best.ckpt").exists()
    assert (fitted.chosen_update, fitted.updates) == (1, 3)
    assert "the nll of 3 of 3 validations is not a finite number" in fitted.warnings[1]


def test_every_bleu_is_better_than_none_and_then_nll_decides():
    ranked = [
        Validated(math.nan, 0.0),
        Validated(9.0, 0.0),
        Validated(0.01, 0.0),
        Validated(9.0, 0.001),
        Validated(math.nan, 3.0),
        Validated(2.0, 30.0),
    ]
    ranks = [validated.rank for validated in ranked]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == len(ranks)


def test_doubts():
    def points(*bleu):
        return [Point(k + 1, 1.0, 2.0, b) for k, b in enumerate(bleu)]

    assert doubts(points(0.0, 3.0, 2.0)) == []
    assert doubts(points(3.0)) == []
    (said,) = doubts(points(3.0, 2.0, 1.0))
    assert said.startswith("BLEU never rose after the first validation (update 1, 3.00; the last")
    (said,) = doubts(points(0.0))
    assert said.startswith("BLEU was 0 in the validation")
