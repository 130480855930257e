"""One run from its configuration to its end, however that comes; Hydra calls it.

What a run says of itself when it ends early is said here, and its folder is kept in order.
"""

import json
import shlex
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

from omegaconf import DictConfig

from kakehashi.commands.config import TrainConfig, read_config
from kakehashi.commands.exits import fail, interrupted, say
from kakehashi.commands.lock import held
from kakehashi.commands.record import FAILED
from kakehashi.commands.resuming import AUTO, CONFIG, check_unchanged, record, without_resume
from kakehashi.data.notes import note
from kakehashi.errors import ConfigError, KakehashiError, Stopped
from kakehashi.processes import is_first

SUMMARY = "summary.json"
REMAINS = ("checkpoints", "model", SUMMARY)
"""What an earlier run leaves in its folder, and another one would write over."""


def task(composed: DictConfig) -> float:
    """One run, in the folder that Hydra has made for it; returns its validation BLEU.

    Raises:
        KakehashiError: in a sweep, which goes on with its other runs.
        SystemExit: otherwise, with 1 after an error and 128 + its number after a signal.
    """
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    hydra = HydraConfig.get()
    folder = Path(hydra.runtime.output_dir)
    sweeping = hydra.mode == RunMode.MULTIRUN
    try:
        with held(folder):
            return _run(composed, folder, list(hydra.overrides.task), sweeping)
    except KakehashiError as error:
        if not isinstance(error, ConfigError) and _can_go_on(folder):
            note(_hint(folder))
        if not sweeping:
            fail(error)
        say(error)
        raise
    except (KeyboardInterrupt, Stopped) as stop:
        number = stop.number if isinstance(stop, Stopped) else signal.SIGINT
        if not is_first():
            sys.exit(128 + number)  # one of them says so
        interrupted(f"to go on: {_again(folder)}" if _can_go_on(folder) else "", number)
    except Exception:
        # what nobody foresaw comes with its traceback
        if _can_go_on(folder):
            note(_hint(folder))
        raise


def _run(composed: DictConfig, folder: Path, words: list[str], sweeping: bool) -> float:
    """In a folder that no other run can write into; leaves it in order, however the run ends."""
    fresh = is_first() and not any(folder.iterdir())
    words = without_resume(words)
    try:
        config = read_config(composed)
        if sweeping and config.trainer.devices * config.trainer.num_nodes > 1:
            raise ConfigError(
                "the runs of --multirun are of one process each: leave trainer.devices and "
                "trainer.num_nodes at 1, or start each run by itself"
            )
        resume = _goes_on(config, composed, folder)
        if resume and (folder / SUMMARY).exists():
            return _finished(folder)

        def keep_settings() -> None:
            if is_first():
                record(folder, composed, words)

        if not resume:
            keep_settings()
        # torch and Lightning take seconds to import: not before the configuration is known good
        from kakehashi.commands.run import run

        bleu = run(config, folder, words, resume, keep_settings)
    except BaseException as error:
        if fresh and not _can_go_on(folder):
            shutil.rmtree(folder, ignore_errors=True)
        elif isinstance(error, Exception) and not isinstance(error, ConfigError | Stopped):
            _say_failed(folder, error)
        raise
    if is_first():
        (folder / FAILED).unlink(missing_ok=True)
    return bleu


def _say_failed(folder: Path, error: Exception) -> None:
    if _can_go_on(folder):
        with suppress(OSError):  # a full disk has been told already
            (folder / FAILED).write_text(f"{error}\n", encoding="utf-8")


def _goes_on(config: TrainConfig, composed: DictConfig, folder: Path) -> bool:
    """Whether a run in the folder is gone on with.

    Raises:
        ConfigError: when there is a run that nobody asked to go on with, or as another one.
    """
    if not is_first():
        return config.resume is not None  # of what the first process refuses nothing comes
    if config.resume is None or (config.resume == AUTO and not (folder / CONFIG).exists()):
        _refuse_second_run(folder)
        return False
    check_unchanged(composed, folder, config.resume_changed)
    return True


def _finished(folder: Path) -> float:
    note(f"{folder} is finished, there is nothing to go on with. It came to:")
    if is_first():
        sys.stdout.write((folder / "summary.txt").read_text(encoding="utf-8"))
    summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
    bleu: float = summary["training"]["validated"]["bleu"]
    return bleu


def _refuse_second_run(folder: Path) -> None:
    """Only with ``hydra.run.dir``: by itself every run has a folder of its own."""
    if found := [name for name in REMAINS if (folder / name).exists()]:
        raise ConfigError(
            f"{folder} holds a run already ({', '.join(found)}), and nothing in it is overwritten: "
            "give another folder, leave hydra.run.dir out, or go on with it by resume=auto"
        )


def _again(folder: Path) -> str:
    return f"kakehashi train resume={shlex.quote(str(folder))}"


def _hint(folder: Path) -> str:
    return f"What was trained so far is kept; to go on with it: {_again(folder)}"


def _can_go_on(folder: Path) -> bool:
    return is_first() and any((folder / "checkpoints").glob("*.ckpt"))
