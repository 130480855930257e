"""`resume=RUN`: the words of the run that goes on, and what has changed since it began."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from kakehashi.commands.saved import flat_settings, saved_config, saved_words
from kakehashi.data.reading import write_bytes
from kakehashi.errors import ConfigError

CONFIG = "config.yaml"
"""The whole configuration, in a run's folder."""
RECORD = "overrides.yaml"
"""The words that it was composed of, beside it."""
AUTO = "auto"
FREE = ("resume", "resume_changed", "name", "runs", "data.root", "data.workers")
"""Settings that may be others in a run that goes on: none of its updates depends on them."""


def expand(words: Sequence[str]) -> list[str]:
    """The words that compose a run anew, where one of them is ``resume=RUN``.

    They are the run's own, then those that were typed now, and its folder. Any
    other words, ``resume=auto`` among them, come back as they are.

    Raises:
        ConfigError: when there is no run in that folder, or its words are damaged.
    """
    asked = [word.removeprefix("resume=") for word in words if word.startswith("resume=")]
    if not asked or asked[-1] in (AUTO, "null") or asked[-1].startswith("'"):
        return list(words)
    folder = Path(asked[-1]).expanduser().resolve()
    recorded = folder / RECORD
    if not (folder / CONFIG).is_file() or not recorded.is_file():
        raise ConfigError(
            f"resume={asked[-1]}: there is no run in {folder} (a run's folder holds {CONFIG}); "
            "name a folder such as runs/NAME/DATE, or runs/NAME/latest"
        )
    own = saved_words(recorded)
    typed = [word for word in words if not word.startswith("resume=")]
    place = [f"resume={quoted(str(folder))}", f"hydra.run.dir={quoted(str(folder))}"]
    return [*without_resume(own), *typed, *place]


def without_resume(words: Sequence[str]) -> list[str]:
    """What a run is made of, without how it was gone on with."""
    return [word for word in words if not word.startswith(("resume=", "resume_changed="))]


def record(folder: Path, composed: DictConfig, words: Sequence[str]) -> None:
    """Keep the whole configuration of a run and the words that make it, to go on with it."""
    write_bytes(folder / RECORD, OmegaConf.to_yaml(OmegaConf.create(list(words))).encode())
    write_bytes(folder / CONFIG, OmegaConf.to_yaml(composed, resolve=True).encode())


def quoted(text: str) -> str:
    """A value that Hydra's grammar takes as it is."""
    backslashes = len(text) - len(text.rstrip("\\"))
    text = text.replace("'", "\\'")
    return f"'{text}{backslashes * chr(92)}'"


def check_unchanged(composed: DictConfig, folder: Path, told: bool) -> None:
    """Refuse to go on with other settings than a run began with, unless ``told`` to.

    Raises:
        ConfigError: naming each setting that differs, with both values.
    """
    resolved = OmegaConf.create(OmegaConf.to_container(composed, resolve=True))
    assert isinstance(resolved, DictConfig)
    before, now = flat_settings(saved_config(folder)), flat_settings(resolved)
    changed = [
        f"{name} was {_shown(before, name)} and is {_shown(now, name)}"
        for name in sorted(before.keys() | now.keys())
        if name not in FREE and before.get(name, ...) != now.get(name, ...)
    ]
    kept = [said for said in changed if said.startswith("optimizer.")]
    if kept and told:
        raise ConfigError(
            f"{'; '.join(kept)}: the optimiser comes from the checkpoint with its settings, and "
            "resume_changed has no say in them; start a new run with other ones"
        )
    if changed and not told:
        raise ConfigError(
            f"{folder} began with other settings: {'; '.join(changed)}. It would not be the same "
            "run any more; to go on all the same, add resume_changed=true"
        )


def _shown(values: dict[str, Any], name: str) -> str:
    return repr(values[name]) if name in values else "not there"
