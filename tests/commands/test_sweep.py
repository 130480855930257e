"""Sweeps, by a launcher that only pretends to train."""

import csv
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from hydra.core.utils import JobReturn, JobStatus
from omegaconf import OmegaConf

from kakehashi.commands.sweeper import Search
from kakehashi.errors import ConfigError, TrainingError

BEST_RATE = 3e-3
RATE = "optimizer.learning_rate=tag(log,interval(1e-4,1e-1))"


class Pretence:
    """The nearer a run's learning rate is to the best one, the higher its BLEU."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.rates = folder, list[float]()

    def launch(self, runs: list[list[str]], initial_job_idx: int) -> list[JobReturn]:
        return [self._run(words, initial_job_idx + k) for k, words in enumerate(runs)]

    def _run(self, words: list[str], number: int) -> JobReturn:
        given = dict(word.split("=", 1) for word in words)
        rate = float(given["optimizer.learning_rate"])
        self.rates.append(rate)
        folder = self.folder / f"run-{number}"
        config = OmegaConf.create({"hydra": {"runtime": {"output_dir": str(folder)}}})
        if given.get("seed") == "13":
            error = TrainingError("seed 13 brings bad luck")
            return JobReturn(hydra_cfg=config, status=JobStatus.FAILED, _return_value=error)
        facts = {
            "test": {"scores": {"bleu": {"value": rate}}},
            "seconds": {"training": 30.0, "test": 60.0},
            "reproduce": f"kakehashi train {' '.join(words)}",
        }
        folder.mkdir()
        (folder / "summary.json").write_text(json.dumps(facts), encoding="utf-8")
        bleu = 30 - math.log(rate / BEST_RATE) ** 2
        return JobReturn(hydra_cfg=config, status=JobStatus.COMPLETED, _return_value=bleu)


@pytest.fixture
def pretence(tmp_path) -> Pretence:
    return Pretence(tmp_path)


@pytest.fixture
def sweep(tmp_path, pretence, monkeypatch) -> Callable[..., None]:
    """Search with these words."""

    def search(*words: str, n_trials: int, at_once: int = 1) -> None:
        made = Search(n_trials, at_once, seed=1, folder=str(tmp_path / "sweep"))
        made.launcher = pretence
        made.hydra_context = SimpleNamespace(config_loader=None)
        monkeypatch.setattr(made, "validate_batch_is_legal", lambda batch: None)
        made.sweep(list(words))

    return search


def interrupted(runs, initial_job_idx):
    raise KeyboardInterrupt


def table(folder: Path) -> list[dict[str, str]]:
    with (folder / "sweep" / "sweep.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_a_search_finds_the_best_and_says_how_to_repeat_it(sweep, pretence, tmp_path, capsys):
    sweep(RATE, "model=rnn", n_trials=30)
    rates, away = pretence.rates, [abs(math.log(rate / BEST_RATE)) for rate in pretence.rates]
    assert len(rates) == 30
    found = json.loads((tmp_path / "sweep" / "sweep.json").read_text(encoding="utf-8"))
    nearest = min(range(30), key=away.__getitem__)
    assert found["best"] == nearest
    assert away[nearest] < 0.3
    # later trials have learnt from earlier ones: drawn evenly they would be 1.7 away on average
    assert sum(away[15:]) / 15 < 1
    rows = table(tmp_path)
    assert [int(row["trial"]) for row in rows] == list(range(30))
    assert [float(row["optimizer.learning_rate"]) for row in rows] == rates
    assert {row["minutes"] for row in rows} == {"1.50"}
    text = capsys.readouterr().out
    assert text == (tmp_path / "sweep" / "sweep.txt").read_text(encoding="utf-8")
    assert f"kakehashi train model=rnn optimizer.learning_rate={rates[nearest]!r}\n" in text


def test_a_sweep_goes_on_where_it_was(sweep, pretence, tmp_path):
    sweep(RATE, n_trials=3)
    sweep(RATE, n_trials=3)
    assert len(pretence.rates) == 3
    sweep(RATE, n_trials=8, at_once=3)
    assert len(pretence.rates) == len(set(pretence.rates)) == len(table(tmp_path)) == 8
    with pytest.raises(ConfigError, match=r"with other words \(one of the two has not model=rnn\)"):
        sweep(RATE, "model=rnn", n_trials=9)
    assert len(pretence.rates) == 8


def test_what_was_interrupted_is_done_again(sweep, pretence, tmp_path, monkeypatch):
    sweep(RATE, n_trials=1)
    with monkeypatch.context() as patch:
        patch.setattr(pretence, "launch", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sweep(RATE, n_trials=3)
    assert len(table(tmp_path)) == 1
    sweep(RATE, n_trials=3)
    assert [row["trial"] for row in table(tmp_path)] == ["0", "2", "3"]


def test_a_trial_that_fails_is_recorded_and_the_sweep_goes_on(sweep, pretence, tmp_path, capsys):
    with pytest.raises(TrainingError) as failure:
        sweep(RATE, "seed=choice(1,13)", n_trials=12)
    rows = table(tmp_path)
    assert len(rows) == 12
    failed = [row for row in rows if row["seed"] == "13"]
    assert 0 < len(failed) < 12
    assert str(failure.value).startswith(f"{len(failed)} of 12 trials failed")
    assert {row["validation BLEU"] for row in failed} == {"failed"}
    assert all(float(row["validation BLEU"]) < 30 for row in rows if row not in failed)
    assert all(not row["folder"] for row in failed)
    assert "The best is trial" in capsys.readouterr().out
    trials = json.loads((tmp_path / "sweep" / "sweep.json").read_text(encoding="utf-8"))["trials"]
    assert {t["error"] for t in trials} == {None, "seed 13 brings bad luck"}


def test_what_is_wrong_with_a_sweep(sweep, monkeypatch):
    with pytest.raises(ConfigError, match="nothing to search"):
        sweep("seed=2", n_trials=1)
    with pytest.raises(ConfigError, match=r"hydra\.sweeper\.n_trials is 0"):
        sweep(RATE, n_trials=0)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ConfigError, match=r"pip install 'kakehashi\[sweep\]'"):
        sweep(RATE, n_trials=1)
