"""`kakehashi train`: Hydra composes the experiment, and the whole path is walked.

Every word after `train` is Hydra's. This file is a script too: Lightning starts the further
processes of a distributed run by calling it again with the same words.
"""

import difflib
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from kakehashi.commands.config import config_dir, read_config, register_schemas
from kakehashi.commands.exits import fail, interrupted
from kakehashi.commands.record import FAILED
from kakehashi.errors import ConfigError, KakehashiError

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
    words = list(hydra_config.overrides.task)
    fresh = {path.name for path in folder.iterdir()} <= {".hydra"}
    try:
        config = read_config(composed)
        _refuse_second_run(folder)
        (folder / "config.yaml").write_text(
            OmegaConf.to_yaml(composed, resolve=True), encoding="utf-8"
        )
        # torch and Lightning take seconds to import: not before the configuration is known good
        from kakehashi.commands.run import run

        run(config, folder, words)
    except KakehashiError as error:
        if not _remove_if_nothing_was_trained(folder, fresh):
            with suppress(OSError):  # a full disk has been told already
                (folder / FAILED).write_text(f"{error}\n", encoding="utf-8")
        fail(error)
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
