"""A corpus from a hub of data sets, or from a local folder of the same form."""

import logging
from typing import Any

from kakehashi.data.config import DataConfig, SplitConfig
from kakehashi.data.corpora.base import Corpus, assemble
from kakehashi.data.pairs import Pairs
from kakehashi.errors import ConfigError, CorpusError, DataError


def load_hub(config: DataConfig) -> Corpus:
    """Load `config.hub_path` with the library `datasets`, which keeps what it fetched.

    Raises ConfigError when the path is missing, CorpusError (one sentence, with what to do) when
    the hub can't be reached or has no such data set or split, DataError for absent columns.
    """
    if config.hub_path is None:
        raise ConfigError("data.kind=hub needs data.hub_path=NAME (or a local folder)")
    loaded = {
        name: _load(config, split.split or name)
        for name, split in (("train", config.train), ("valid", config.valid), ("test", config.test))
        if name == "train" or _names_a_split(name, split)
    }
    pairs = {name: _pairs(data, config) for name, data in loaded.items()}
    info = loaded["train"].info
    provenance = {"data set": config.hub_path, "revision": config.hub_revision or "latest"}
    if config.hub_name is not None:
        provenance["configuration"] = config.hub_name
    return assemble(
        config,
        pairs["train"],
        pairs.get("valid"),
        pairs.get("test"),
        licence=info.license or "see the data set's page",
        attribution=f"Data set {config.hub_path}",
        provenance=provenance,
    )


def _names_a_split(name: str, split: SplitConfig) -> bool:
    if split.path is not None or split.source is not None:
        raise ConfigError(f"data.{name} names files; with data.kind=hub give data.{name}.split")
    return split.split is not None


def _load(config: DataConfig, split: str) -> Any:
    import datasets
    from datasets.exceptions import DatasetsError

    # The client's retries end in one error that says the same; each is a line of its own here.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    try:
        return datasets.load_dataset(
            config.hub_path, config.hub_name, revision=config.hub_revision, split=split
        )
    # The hub's client raises its network errors as OSError (ConnectionError); DatasetNotFoundError
    # is one too. An unknown split or configuration is a ValueError, a data set that is a program
    # a RuntimeError.
    except (OSError, ValueError, RuntimeError, DatasetsError) as error:
        reason = " ".join(str(error).split())
        raise CorpusError(
            f"cannot load split {split!r} of {config.hub_path!r} from the hub ({reason}); check "
            "the name and the network connection, or set data.hub_path to a folder that holds it"
        ) from error


def _pairs(data: Any, config: DataConfig) -> Pairs:
    flat = data.flatten()
    sides = []
    for column, language in (
        (config.source_column, config.source_language),
        (config.target_column, config.target_language),
    ):
        name = column or language
        if name not in flat.column_names:
            raise DataError(
                f"{config.hub_path}: no field {name!r}; there are {', '.join(flat.column_names)} "
                "(set data.source_column=... data.target_column=...)"
            )
        texts = list(flat[name])
        for number, text in enumerate(texts, 1):
            if not isinstance(text, str):
                raise DataError(f"{config.hub_path}, row {number}: {name!r} is {text!r}, not text")
        sides.append(texts)
    return Pairs(sides[0], sides[1], f"{config.hub_path} ({data.split})")
