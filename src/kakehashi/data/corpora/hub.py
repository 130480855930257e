"""A corpus from a hub of data sets, or from a local folder of the same form."""

import hashlib
import json
import logging
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from kakehashi.data.arrow import column_texts
from kakehashi.data.config import DataConfig, SplitConfig
from kakehashi.data.corpora.base import Corpus, assemble
from kakehashi.data.corpora.ingest import ingest
from kakehashi.data.corpora.prepared import hash_files, prepared
from kakehashi.data.pairfiles import Row
from kakehashi.data.reading import DECOMPRESSION_ERRORS, Watch, check_whole, expand
from kakehashi.errors import ConfigError, CorpusError, DataError

_AT_A_TIME = 10_000


def load_hub(config: DataConfig) -> Corpus:
    """Load `config.hub_path` with the library `datasets`, which keeps what it fetched.

    Raises ConfigError when the path is missing, CorpusError (one sentence, with what to do) when
    the hub can't be reached or has no such data set or split, DataError for absent columns, fields
    that are not text, TSV and CSV files, and damaged ones.
    """
    if config.hub_path is None:
        raise ConfigError("data.kind=hub needs data.hub_path=NAME (or a local folder)")
    folder = expand(config.hub_path)
    files = hash_folder(folder) if folder.is_dir() else None
    loaded = {
        name: load_split(config, split.split or name, files)
        for name, split in (("train", config.train), ("valid", config.valid), ("test", config.test))
        if name == "train" or names_a_split(name, split)
    }
    sides = columns(config)
    rows = {name: [_HubRows(data, config.hub_path, *sides)] for name, data in loaded.items()}
    info = loaded["train"].info
    provenance = {"data set": config.hub_path, "revision": config.hub_revision or "latest"}
    if config.hub_name is not None:
        provenance["configuration"] = config.hub_name

    def make(folder: Path) -> Corpus:
        for file in files or ():
            check_whole(file)  # the library takes a .zst file that is cut for a shorter one
        pairs = {name: ingest(part, part[0].name, folder, name) for name, part in rows.items()}
        return assemble(
            config,
            pairs["train"],
            pairs.get("valid"),
            pairs.get("test"),
            licence=info.license or "see the data set's page",
            attribution=f"Data set {config.hub_path}",
            provenance=provenance,
        )

    if files is None:
        # What the library made of what it fetched.
        files = hash_files(
            file["filename"] for data in loaded.values() for file in data.cache_files
        )
    return prepared(config, files, make)


def hash_folder(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file in it, by its path."""
    return hash_files(sorted(str(path) for path in folder.rglob("*") if path.is_file()))


def names_a_split(name: str, split: SplitConfig) -> bool:
    """Whether a split is given; raises ConfigError for one that is given as files."""
    if split.path is not None or split.source is not None:
        raise ConfigError(f"data.{name} names files; with data.kind=hub give data.{name}.split")
    return split.split is not None


def every_split(config: DataConfig) -> dict[str, list[Row]]:
    """The rows of all splits of a data set, as they are stored, by the splits' own names.

    Raises the errors of `load_hub`.
    """
    assert config.hub_path is not None
    folder = expand(config.hub_path)
    loaded = load_split(config, None, hash_folder(folder) if folder.is_dir() else None)
    sides = columns(config)
    return {
        name: list(_HubRows(data, config.hub_path, *sides).rows()) for name, data in loaded.items()
    }


def load_split(
    config: DataConfig,
    split: str | None,
    files: dict[str, str] | None = None,
    *,
    streaming: bool = False,
) -> Any:
    """A split of a data set on the hub, or of a folder with `files` and their hashes; or all.

    Raises CorpusError when it can't be had, DataError for a damaged file and for what the library
    would not read as it is written.
    """
    import datasets
    from datasets.exceptions import DatasetGenerationError, DatasetsError

    path, cache = config.hub_path, None
    if files is not None:
        # The library goes by the times of files; what it made of other content is not to be found.
        key = hashlib.sha256(json.dumps(files).encode()).hexdigest()[:24]
        cache = str(expand(config.root) / "cache" / f"folder-{key}")
        path = str(expand(path or ""))
    # The client's retries end in one error that says the same; each is a line of its own here.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    try:
        builder = datasets.load_dataset_builder(
            path, config.hub_name, revision=config.hub_revision, cache_dir=cache
        )
        _check_verbatim(config, builder.info.builder_name)
        if streaming:
            return builder.as_streaming_dataset(split=split)
        builder.download_and_prepare()
        return builder.as_dataset(split=split)
    # The library's own StopIteration: it looks for the fields in the first row of the first file.
    except (DatasetGenerationError, StopIteration, *DECOMPRESSION_ERRORS) as error:
        for file in files or ():
            check_whole(file)
        reason = " ".join(str(error.__cause__ or error).split()) or "its first file has no row"
        raise CorpusError(
            f"cannot read {_said(split)}{config.hub_path!r} ({reason}); a file of it may be "
            "damaged: fetch it again"
        ) from error
    # The hub's client raises its network errors as OSError (ConnectionError); DatasetNotFoundError
    # is one too. An unknown split or configuration is a ValueError, a data set that is a program
    # a RuntimeError.
    except (OSError, ValueError, RuntimeError, DatasetsError) as error:
        reason = " ".join(str(error).split())
        raise CorpusError(
            f"cannot load {_said(split)}{config.hub_path!r} from the hub ({reason}); check "
            "the name and the network connection, or set data.hub_path to a folder that holds it"
        ) from error


def _said(split: str | None) -> str:
    return "" if split is None else f"split {split!r} of "


def _check_verbatim(config: DataConfig, builder: str | None) -> None:
    if builder == "csv":
        raise DataError(
            f"{config.hub_path!r} is made of TSV or CSV files, in which the library for data sets "
            "takes quotes for the ends of fields and NA for nothing; have the files in a folder "
            "and read them with data=files data.train.path=FILE"
        )


def columns(config: DataConfig) -> tuple[str, str]:
    """The fields of source and target."""
    return (
        config.source_column or config.source_language,
        config.target_column or config.target_language,
    )


def check_fields(name: str, wanted: Iterable[str], there: Collection[str]) -> None:
    """Raises DataError for a field that a data set doesn't have."""
    for field in wanted:
        if field not in there:
            raise DataError(
                f"{name}: no field {field!r}; there are {', '.join(there)} "
                "(set data.source_column=... data.target_column=...)"
            )


class _HubRows:
    """The pairs of a split, read some thousands at a time."""

    def __init__(self, data: Any, path: str, source: str, target: str) -> None:
        """Raises DataError for fields that the data set does not have."""
        self.name = f"{path} ({data.split})"
        self.size = len(data)
        self._path, self._sides = path, (source, target)
        self._data = data.flatten()
        check_fields(path, self._sides, self._data.column_names)

    def rows(self, watch: Watch | None = None) -> Iterator[Row]:
        """Number, source, target; raises DataError for a field that is not text."""
        number = 0
        data = self._data.select_columns(list(dict.fromkeys(self._sides))).with_format("arrow")
        for table in data.iter(_AT_A_TIME):
            sides = [column_texts(table, side, self._path, number) for side in self._sides]
            for pair in zip(*sides, strict=True):
                number += 1
                yield number, *pair
            if watch is not None:
                watch(len(table))
