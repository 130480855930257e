"""The configuration that a run has written down."""

from pathlib import Path
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from kakehashi.errors import ConfigError


def saved_config(run: Path) -> DictConfig:
    """What stands in a run's config.yaml, as it was composed; ``read_config`` checks it.

    Raises:
        ConfigError: when there is none, or it is damaged.
    """
    path = run / "config.yaml"
    loaded = _loaded(path, resolve=True)
    if not isinstance(loaded, DictConfig) or "trainer" not in loaded:
        raise ConfigError(f"{path} is damaged: it holds no settings of a run")
    return loaded


def saved_words(path: Path) -> list[str]:
    """The words that a run was composed of, from its file of them.

    Raises:
        ConfigError: when there is none, or it is damaged.
    """
    # not resolved: what a word refers to is for Hydra to find
    words: Any = OmegaConf.to_container(_loaded(path, resolve=False))
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ConfigError(f"{path} is damaged: it holds no words of a run")
    return words


def _loaded(path: Path, *, resolve: bool) -> DictConfig | ListConfig:
    try:
        loaded = OmegaConf.load(path)
        if resolve:
            OmegaConf.resolve(loaded)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    except (YAMLError, OmegaConfBaseException) as error:
        said = " ".join(str(error).split())
        raise ConfigError(f"{path} is damaged ({said})") from error
    return loaded


def flat_settings(config: DictConfig) -> dict[str, Any]:
    """Every setting by its whole name, such as ``model.d_model``; lists are values."""
    flat: dict[str, Any] = {}

    def walk(values: dict[str, Any], prefix: str) -> None:
        for name, value in values.items():
            if isinstance(value, dict):
                walk(value, f"{prefix}{name}.")
            else:
                flat[f"{prefix}{name}"] = value

    plain: dict[str, Any] = OmegaConf.to_container(config)  # type: ignore[assignment]
    walk(plain, "")
    return flat
