"""`kakehashi train`: Hydra composes the experiment, and the whole path is walked.

Every word after `train` is Hydra's. This file is a script too: Lightning starts the further
processes of a distributed run by calling it again with the same words.
"""

import difflib
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from kakehashi.commands.config import TrainConfig, config_dir, read_config, register_schemas
from kakehashi.commands.exits import fail, interrupted
from kakehashi.commands.lock import held, is_main_process
from kakehashi.commands.resuming import (
    AUTO,
    CONFIG,
    check_unchanged,
    expand,
    record,
    without_resume,
)
from kakehashi.data.notes import note
from kakehashi.errors import ConfigError, KakehashiError, Stopped

SUMMARY = "summary.json"
REMAINS = ("checkpoints", "model", SUMMARY)
"""What an earlier run leaves in its folder, and another one would write over."""


def train(words: Sequence[str] | None = None) -> None:
    """Run `kakehashi train` with these words (None: those of the command line).

    Raises:
        SystemExit: with 1 after an error, 130 after Ctrl-C; what went wrong stands on stderr.
    """
    import hydra
    from hydra.errors import HydraException

    folder = config_dir()
    register_schemas()
    try:
        sys.argv = [__file__, *expand(sys.argv[1:] if words is None else words)]
    except ConfigError as error:
        fail(error)
    # Lightning starts further processes by sys.argv, or by `python -m` and the main module's name
    # where there is one: that would be the whole command line, which knows no such words
    sys.modules["__main__"].__spec__ = None
    # Hydra's errors come to us as exceptions, for one message of our form; without this it prints
    # them itself, and with a traceback when it takes a coverage tool for a debugger
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        hydra.main(config_path=str(folder), config_name="train", version_base="1.3")(_task)()
    except (HydraException, OmegaConfBaseException) as error:
        fail(ConfigError(_said_plainly(error)))


def _said_plainly(error: Exception) -> str:
    """What Hydra found wrong with the words, without its advice to get round the schema."""
    cause = error.__cause__ if isinstance(error.__cause__, OmegaConfBaseException) else error
    if isinstance(cause, ConfigAttributeError | ConfigKeyError) and cause.full_key:
        known = [str(key) for key in cause.parent_node or () if key != "hydra"]
        near = difflib.get_close_matches(str(cause.key), known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        return f"there is no setting {cause.full_key}; {hint}"
    said = str(error)
    if cause is not error:
        said = f"{said.splitlines()[0]}: {str(cause).splitlines()[0]}"
    return said.split("\nConfig search path:")[0].removeprefix("In 'train': ")


def _task(composed: DictConfig) -> None:
    """One run, in the folder that Hydra has made for it."""
    from hydra.core.hydra_config import HydraConfig

    hydra_config = HydraConfig.get()
    folder = Path(hydra_config.runtime.output_dir)
    words = without_resume(hydra_config.overrides.task)
    fresh = {path.name for path in folder.iterdir()} <= {".hydra"}
    again = f"kakehashi train resume={shlex.quote(str(folder))}"
    try:
        config = read_config(composed)
        with held(folder):
            resume = _goes_on(config, composed, folder)
            if resume and (folder / SUMMARY).exists():
                note(f"{folder} is finished, there is nothing to go on with. It came to:")
                sys.stdout.write((folder / "summary.txt").read_text(encoding="utf-8"))
                return
            if is_main_process():
                record(folder, composed, words)
            _run(config, folder, words, resume)
    except KakehashiError as error:
        _remove_if_nothing_was_trained(folder, fresh)
        if not isinstance(error, ConfigError) and _checkpoints(folder):
            note(f"What was trained so far is kept; to go on with it: {again}")
        fail(error)
    except (KeyboardInterrupt, Stopped) as stop:
        _remove_if_nothing_was_trained(folder, fresh)
        number = stop.number if isinstance(stop, Stopped) else signal.SIGINT
        if not is_main_process():
            sys.exit(128 + number)  # one of them says so
        interrupted(f"to go on: {again}" if _checkpoints(folder) else "", number)
    except Exception:
        # what nobody foresaw comes with its traceback
        if _checkpoints(folder) and is_main_process():
            note(f"What was trained so far is kept; to go on with it: {again}")
        raise


def _run(config: TrainConfig, folder: Path, words: list[str], resume: bool) -> None:
    # torch and Lightning take seconds to import: not before the configuration is known good
    from kakehashi.commands.run import run

    run(config, folder, words, resume)


def _goes_on(config: TrainConfig, composed: DictConfig, folder: Path) -> bool:
    """Whether a run in the folder is gone on with.

    Raises:
        ConfigError: when there is a run that nobody asked to go on with, or as another one.
    """
    if config.resume is None or (config.resume == AUTO and not (folder / CONFIG).exists()):
        _refuse_second_run(folder)
        return False
    check_unchanged(composed, folder, config.resume_changed)
    return True


def _refuse_second_run(folder: Path) -> None:
    """Only with ``hydra.run.dir``: by itself every run has a folder of its own."""
    if found := [name for name in REMAINS if (folder / name).exists()]:
        raise ConfigError(
            f"{folder} holds a run already ({', '.join(found)}), and nothing in it is overwritten: "
            "give another folder, leave hydra.run.dir out, or go on with it by resume=auto"
        )


def _checkpoints(folder: Path) -> bool:
    return any((folder / "checkpoints").glob("*.ckpt"))


def _remove_if_nothing_was_trained(folder: Path, fresh: bool) -> None:
    """Leave no empty run folders behind; a folder that held something before is never removed."""
    if not fresh or _checkpoints(folder) or not is_main_process():
        return
    shutil.rmtree(folder, ignore_errors=True)
    if not any(folder.parent.iterdir()):
        folder.parent.rmdir()


if __name__ == "__main__":
    train()
