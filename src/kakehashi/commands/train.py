"""`kakehashi train`: Hydra composes the experiment, and the whole path is walked.

Every word after `train` is Hydra's. This file is a script too: Lightning starts the further
processes of a distributed run by calling it again with the same words.
"""

import difflib
import os
import shutil
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from kakehashi.commands.config import config_dir, read_config, register_schemas
from kakehashi.commands.exits import fail, interrupted, say
from kakehashi.errors import ConfigError, KakehashiError
from kakehashi.processes import is_first, settled

STARTED = "KAKEHASHI_STARTED"
"""Environment variable: when the run started, as its folder is called."""
REMAINS = ("checkpoints", "model", "summary.json")
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
    if words is not None:
        sys.argv = [__file__, *words]
        # or Lightning would start `python -m` of that module, without the word `train`
        sys.modules["__main__"].__spec__ = None
    os.environ[STARTED] = settled(
        "started", datetime.now().astimezone().strftime("%Y-%m-%d_%H-%M-%S-%f")
    )
    if not is_first():
        sys.argv.append("hydra.output_subdir=null")
    # Hydra's errors come to us as exceptions, for one message of our form; without this it prints
    # them itself, and with a traceback when it takes a coverage tool for a debugger
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        hydra.main(config_path=str(folder), config_name="train", version_base="1.3")(_task)()
    except (HydraException, OmegaConfBaseException) as error:
        fail(ConfigError(_said_plainly(error)))
    except KakehashiError as error:
        fail(error)


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


def _task(composed: DictConfig) -> float:
    """One run, in the folder that Hydra has made for it; returns its validation BLEU.

    Raises:
        KakehashiError: in a sweep, which goes on with its other runs.
    """
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    hydra_config = HydraConfig.get()
    folder = Path(hydra_config.runtime.output_dir)
    words = list(hydra_config.overrides.task)
    fresh = is_first() and {path.name for path in folder.iterdir()} <= {".hydra"}
    sweeping = hydra_config.mode == RunMode.MULTIRUN
    try:
        config = read_config(composed)
        if sweeping and config.trainer.devices * config.trainer.num_nodes > 1:
            raise ConfigError(
                "the runs of --multirun are of one process each: leave trainer.devices and "
                "trainer.num_nodes at 1, or start each run by itself"
            )
        if is_first():
            _refuse_second_run(folder)
            (folder / "config.yaml").write_text(
                OmegaConf.to_yaml(composed, resolve=True), encoding="utf-8"
            )
        # torch and Lightning take seconds to import: not before the configuration is known good
        from kakehashi.commands.run import run

        return run(config, folder, words)
    except KakehashiError as error:
        _remove_if_nothing_was_trained(folder, fresh)
        if not sweeping:
            fail(error)
        say(error)
        raise
    except KeyboardInterrupt:
        kept = not _remove_if_nothing_was_trained(folder, fresh)
        interrupted(f"what was trained so far is in {folder / 'checkpoints'}" if kept else "")


def _refuse_second_run(folder: Path) -> None:
    """Only with ``hydra.run.dir``: by itself every run has a folder of its own."""
    if found := [name for name in REMAINS if (folder / name).exists()]:
        raise ConfigError(
            f"{folder} holds a run already ({', '.join(found)}), and nothing in it is overwritten: "
            "give another folder, or leave hydra.run.dir out"
        )


def _remove_if_nothing_was_trained(folder: Path, fresh: bool) -> bool:
    """Leave no empty run folders behind; a folder that held something before is never removed."""
    if not fresh or any((folder / "checkpoints").glob("*.ckpt")):
        return False
    shutil.rmtree(folder, ignore_errors=True)
    if not any(folder.parent.iterdir()):
        folder.parent.rmdir()
    return True


if __name__ == "__main__":
    train()
