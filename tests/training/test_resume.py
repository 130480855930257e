"""A run that stops anywhere and goes on is the run that never stopped, bit for bit."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from lightning.pytorch.callbacks import Callback
from tests.training.states import curves, state_of

from kakehashi.errors import TrainingError
from kakehashi.models.build import build_model
from kakehashi.models.config import RNNConfig, TransformerConfig
from kakehashi.training import fit as fit_module
from kakehashi.training.checkpoint import load_checkpoint, write_checkpoint
from kakehashi.training.config import (
    AveragingConfig,
    CallbacksConfig,
    LoggerConfig,
    OptimizerConfig,
    TrainerConfig,
)
from kakehashi.training.fit import FitSettings, fit
from kakehashi.training.schedule import ScheduleConfig


def model(name: str = "transformer"):
    torch.manual_seed(5)
    if name == "rnn":
        return build_model(RNNConfig(d_embedding=8, d_hidden=10, d_attention=7, d_maxout=8), 17)
    config = TransformerConfig(
        encoder_layers=1, decoder_layers=1, d_model=16, d_feedforward=24, n_heads=2, dropout=0.2
    )
    return build_model(config, 17)


def settings(averaging: str = "ema", **trainer) -> FitSettings:
    # three updates an epoch and a half: validations, checkpoints and epochs end apart
    trainer = {"max_updates": 17, "validate_every": 5, "accumulate": 2, "log_every": 2} | trainer
    return FitSettings(
        TrainerConfig(accelerator="cpu", **trainer),
        optimizer=OptimizerConfig("muon", learning_rate=0.01),
        schedule=ScheduleConfig("linear", warmup_updates=3),
        callbacks=CallbacksConfig(
            AveragingConfig(averaging, start=0.2, k=2), patience=9, save_minutes=0
        ),
        logger=LoggerConfig(csv=True, tensorboard=False),
        facts={"seed": 3, "tokenizer_sha256": "a tokenizer"},
        seed=3,
    )


def keep_all(monkeypatch):
    """Checkpoints of every update stay."""
    monkeypatch.setattr("kakehashi.training.saving.Checkpoints._prune", lambda self: None)


def checkpoints(folder: Path) -> list[Path]:
    return sorted(
        (folder / "checkpoints").glob("*-*.ckpt"), key=lambda p: int(p.stem.split("-")[1])
    )


@pytest.mark.parametrize(
    ("name", "averaging", "stops"),
    [("transformer", "ema", (5, 6, 16)), ("transformer", "mean", (9,)), ("rnn", "last_k", (12,))],
)
def test_goes_on_from_any_update(numbers, tmp_path, monkeypatch, name, averaging, stops):
    """Over two epochs; whatever the update after which it stopped, later states are the same."""
    keep_all(monkeypatch)
    whole = tmp_path / "whole"
    first = fit(model(name), numbers, numbers.validator(), settings(averaging), whole)
    assert first.updates == 17
    assert first.epochs > 2
    kept = checkpoints(whole)
    assert len(kept) == 17
    states = {path.name: state_of(path) for path in kept}
    for stop in stops:
        part = tmp_path / f"part-{stop}"
        (part / "checkpoints").mkdir(parents=True)
        (part / "curves").mkdir()
        shutil.copy(kept[stop - 1], part / "checkpoints")
        shutil.copy(whole / "curves" / "metrics.csv", part / "curves")
        best = load_checkpoint(kept[stop - 1])["callbacks"]["Checkpoints"]["best"]
        if best is not None:
            shutil.copy(
                whole / "checkpoints" / f"update-{best['update']}.ckpt", part / "checkpoints"
            )
        again = model(name)
        fitted = fit(
            again, numbers, numbers.validator(), replace(settings(averaging), resume=True), part
        )
        for path in checkpoints(part):
            assert state_of(path) == states[path.name], f"stopped at {stop}, differs at {path.name}"
        assert fitted.resumed == [stop]
        assert (fitted.chosen, fitted.chosen_update) == (first.chosen, first.chosen_update)
        assert fitted.validated == first.validated
        assert [(p.update, p.bleu, p.nll) for p in fitted.points] == [
            (p.update, p.bleu, p.nll) for p in first.points
        ]
        assert curves(part) == curves(whole)


@pytest.fixture
def stopped(numbers, tmp_path) -> Path:
    """A run of eight updates, seen as one that is to go on to twelve."""
    fit(model(), numbers, numbers.validator(), settings(max_updates=8), tmp_path)
    return tmp_path


def go_on(numbers, folder: Path, other=None, **facts):
    chosen = replace(settings(max_updates=12), resume=True)
    chosen = replace(chosen, facts=chosen.facts | facts)
    return fit(other or model(), numbers, numbers.validator(), chosen, folder)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "checkpoints").iterdir())


def test_keeps_the_two_newest_and_the_best(stopped):
    assert names(stopped) == ["best.ckpt", "between-7.ckpt", "update-8.ckpt"]


@pytest.mark.parametrize("harm", ["cut", "flipped", "emptied"])
def test_a_damaged_checkpoint_is_passed_over_and_said(numbers, stopped, capfd, harm):
    path = stopped / "checkpoints" / "update-8.ckpt"
    whole = path.read_bytes()
    path.unlink()  # best.ckpt may be the same file
    damaged = {
        "cut": whole[:-1000],
        "flipped": whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:],
        "emptied": b"",
    }
    path.write_bytes(damaged[harm])
    fitted = go_on(numbers, stopped)
    assert (fitted.resumed, fitted.updates) == ([7], 12)
    said = capfd.readouterr().err
    assert f"{path} is not a whole checkpoint" in said
    assert "going back to update 7" in said
    assert (stopped / "checkpoints" / "update-8.ckpt.damaged").read_bytes() == damaged[harm]


def test_no_whole_checkpoint_is_an_error_and_none_at_all_a_beginning(numbers, stopped, capfd):
    for path in (stopped / "checkpoints").iterdir():
        path.unlink()
        path.write_bytes(b"PK")
    with pytest.raises(TrainingError, match=r"no checkpoint in .* is whole"):
        go_on(numbers, stopped)
    for path in (stopped / "checkpoints").iterdir():
        path.unlink()
    assert go_on(numbers, stopped).resumed == []
    assert "holds no checkpoint yet" in capfd.readouterr().err


def test_another_tokenizer_seed_or_model_is_refused(numbers, stopped):
    with pytest.raises(TrainingError, match=r"value of the tokenizer \(a tokenizer, now another"):
        go_on(numbers, stopped, tokenizer_sha256="another")
    with pytest.raises(TrainingError, match="value of seed"):
        go_on(numbers, stopped, seed=4)
    with pytest.raises(TrainingError, match=r"holds another model: .* is absent there and"):
        go_on(numbers, stopped, model("rnn"))
    wide = build_model(
        TransformerConfig(
            encoder_layers=1, decoder_layers=1, d_model=16, d_feedforward=40, n_heads=2
        ),
        17,
    )
    with pytest.raises(TrainingError, match=r"24 x 16 there and 40 x 16 here|16 x 24 there"):
        go_on(numbers, stopped, wide)


def test_a_lost_best_checkpoint_is_found_again_or_said(numbers, stopped, capfd):
    folder = stopped / "checkpoints"
    state = load_checkpoint(folder / "update-8.ckpt")
    best = state["callbacks"]["Checkpoints"]["best"]["update"]
    (folder / "best.ckpt").unlink()
    if best != 8:
        state["callbacks"]["Checkpoints"]["best"]["update"] = 8
        state["callbacks"]["Recorder"]["points"][-1]["bleu"] = 99.0
        write_checkpoint(state, folder / "update-8.ckpt")
    go_on(numbers, stopped)
    assert load_checkpoint(folder / "best.ckpt")["global_step"] >= 8
    assert "is lost" not in capfd.readouterr().err


def test_a_best_checkpoint_that_is_gone_is_said(numbers, stopped, capfd):
    folder = stopped / "checkpoints"
    state = load_checkpoint(folder / "update-8.ckpt")
    state["callbacks"]["Checkpoints"]["best"] = {"update": 5, "nll": 1.0, "bleu": 98.0}
    write_checkpoint(state, folder / "update-8.ckpt")
    (folder / "best.ckpt").unlink()
    fitted = go_on(numbers, stopped)
    assert "the best checkpoint so far (update 5) is lost" in capfd.readouterr().err
    assert load_checkpoint(folder / "best.ckpt")["global_step"] == 10
    assert fitted.chosen_update in (10, 12)


def test_names_of_a_compiled_model_are_those_of_the_model(numbers, stopped):
    folder = stopped / "checkpoints"
    state = load_checkpoint(folder / "update-8.ckpt")
    state["state_dict"] = {
        name.replace("model.", "model._orig_mod."): weight
        for name, weight in state["state_dict"].items()
    }
    write_checkpoint(state, folder / "update-8.ckpt")
    assert go_on(numbers, stopped).resumed == [8]


def test_a_run_without_patience_left_does_not_go_on(numbers, stopped):
    folder = stopped / "checkpoints"
    state = load_checkpoint(folder / "update-8.ckpt")
    state["callbacks"]["Patience"]["waited"] = 9
    write_checkpoint(state, folder / "update-8.ckpt")
    assert go_on(numbers, stopped).updates == 8


def test_a_full_disk_ends_the_run_and_leaves_what_there_was(numbers, stopped, monkeypatch):
    def full_disk(checkpoint, stream):
        stream.write(b"half of")
        raise RuntimeError("PytorchStreamWriter failed writing file data.pkl: No space left")

    before = names(stopped)
    monkeypatch.setattr(torch, "save", full_disk)
    with pytest.raises(TrainingError, match=r"cannot write .*between-9.*No space left"):
        go_on(numbers, stopped)
    monkeypatch.undo()
    assert names(stopped) == before
    assert go_on(numbers, stopped).resumed == [8]


def test_a_time_budget_goes_on_with_the_number_of_updates_that_it_had_fixed(
    numbers, tmp_path, monkeypatch
):
    class Tired(Callback):
        def on_train_batch_end(self, trainer, module, *_):
            if module.schedule.total is not None and trainer.global_step > 14:
                raise RuntimeError("tired")

    chosen = settings(max_updates=None, max_minutes=0.02, validate_every=0.5)
    with monkeypatch.context() as patched:
        callbacks = fit_module._Run._callbacks
        patched.setattr(fit_module._Run, "_callbacks", lambda self: [*callbacks(self), Tired()])
        with pytest.raises(RuntimeError, match="tired"):
            fit(model(), numbers, numbers.validator(), chosen, tmp_path / "timed")
    timed = model()
    fitted = fit(
        timed, numbers, numbers.validator(), replace(chosen, resume=True), tmp_path / "timed"
    )
    total = fitted.total_updates
    assert fitted.updates == total > 14
    counted = settings(max_updates=total, validate_every=0.5)
    whole = model()
    fit(whole, numbers, numbers.validator(), counted, tmp_path / "counted")
    name = f"checkpoints/update-{total}.ckpt"
    first, second = (load_checkpoint(tmp_path / run / name) for run in ("timed", "counted"))
    assert first["state_dict"].keys() == second["state_dict"].keys()
    for name, weight in first["state_dict"].items():
        assert torch.equal(weight, second["state_dict"][name])


def test_a_run_stopped_in_its_scoring_does_without_a_best_checkpoint_that_is_lost(
    numbers, tmp_path, capfd
):
    fit(model(), numbers, numbers.validator(), settings(max_updates=8), tmp_path)
    folder = tmp_path / "checkpoints"
    state = load_checkpoint(folder / "update-8.ckpt")
    state["callbacks"]["Checkpoints"]["best"]["update"] = 5
    write_checkpoint(state, folder / "update-8.ckpt")
    (folder / "best.ckpt").unlink()
    done = fit(
        model(),
        numbers,
        numbers.validator(),
        replace(settings(max_updates=8), resume=True),
        tmp_path,
    )
    assert done.updates == 8
    assert "is lost" in capfd.readouterr().err
    assert load_checkpoint(folder / "best.ckpt")["global_step"] == 8


def test_curves_stay_while_nothing_new_is_saved(numbers, tmp_path, monkeypatch):
    """A run may be killed between going on and its next checkpoint."""
    fit(model(), numbers, numbers.validator(), settings(max_updates=8), tmp_path)
    before = (tmp_path / "curves" / "metrics.csv").read_bytes()

    class Killed(Callback):
        def on_train_batch_start(self, *_):
            assert (tmp_path / "curves" / "metrics.csv").read_bytes() == before
            raise RuntimeError("killed")

    callbacks = fit_module._Run._callbacks
    monkeypatch.setattr(fit_module._Run, "_callbacks", lambda self: [Killed(), *callbacks(self)])
    with pytest.raises(RuntimeError, match="killed"):
        go_on(numbers, tmp_path)
