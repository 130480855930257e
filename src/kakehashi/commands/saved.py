"""The configuration that a run has written down."""

from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from kakehashi.errors import ConfigError


def saved_config(run: Path) -> DictConfig:
    """What stands in a run's config.yaml, as it was composed; ``read_config`` checks it.

    Raises:
        ConfigError: when there is none, or it is damaged.
    """
    path = run / "config.yaml"
    try:
        loaded = OmegaConf.load(path)
        OmegaConf.resolve(loaded)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    except (YAMLError, OmegaConfBaseException) as error:
        said = " ".join(str(error).split())
        raise ConfigError(f"{path} is damaged ({said})") from error
    if not isinstance(loaded, DictConfig) or "trainer" not in loaded:
        raise ConfigError(f"{path} is damaged: it holds no settings of a run")
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
