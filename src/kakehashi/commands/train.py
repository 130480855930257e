"""`kakehashi train`: Hydra composes the experiment, and the whole path is walked.

Every word after `train` is Hydra's. This file is a script too: Lightning starts the further
processes of a distributed run by calling it again with the same words.
"""

import difflib
import os
import sys
from collections.abc import Sequence
from datetime import datetime

from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from kakehashi.commands.config import config_dir, register_schemas
from kakehashi.commands.exits import fail
from kakehashi.commands.resuming import expand
from kakehashi.commands.task import task
from kakehashi.errors import ConfigError, KakehashiError
from kakehashi.processes import settled

STARTED = "KAKEHASHI_STARTED"
"""Environment variable: when the run started, as its folder is called."""


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
    os.environ[STARTED] = settled(
        "started", datetime.now().astimezone().strftime("%Y-%m-%d_%H-%M-%S-%f")
    )
    # Hydra's errors come to us as exceptions, for one message of our form; without this it prints
    # them itself, and with a traceback when it takes a coverage tool for a debugger
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        hydra.main(config_path=str(folder), config_name="train", version_base="1.3")(task)()
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


if __name__ == "__main__":
    train()
