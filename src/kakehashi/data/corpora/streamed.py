"""A data set on the hub that is read as it is trained on, for one that does not fit on the disk."""

import hashlib
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kakehashi.data.arrow import column_texts
from kakehashi.data.config import DataConfig
from kakehashi.data.corpora.base import Corpus, assemble
from kakehashi.data.corpora.hub import (
    check_fields,
    columns,
    hash_folder,
    load_split,
    names_a_split,
)
from kakehashi.data.corpora.screen import Screen
from kakehashi.data.ledger import Ledger
from kakehashi.data.notes import note
from kakehashi.data.pairs import Pairs
from kakehashi.data.reading import DECOMPRESSION_ERRORS, expand
from kakehashi.data.stream import Part, TrainingStream, pairs_of, shard_name
from kakehashi.errors import ConfigError, CorpusError, DataError

if TYPE_CHECKING:
    import pyarrow as pa

_AT_A_TIME = 10_000
SAMPLED_SHARDS = 16
"""Shards, at even distances, that the sample comes from: each costs a request or two."""


def load_streamed(config: DataConfig) -> Corpus:
    """The corpus of `config.hub_path`, its training pairs as a stream.

    Its `train` is a sample: the first pairs of some shards, `config.buffer` in all, less what is
    held out of them and what the filters leave out. Valid and test that are given are read whole.
    Of `train` the ledger says nothing yet: that is for those who read the stream.

    Raises ConfigError and CorpusError like `load_hub`, DataError for absent fields, for a field
    that is not text, and when there are no pairs.
    """
    if config.hub_path is None:
        raise ConfigError("data.kind=hub needs data.hub_path=NAME (or a local folder)")
    chosen = {
        name: split.split or name
        for name, split in (("train", config.train), ("valid", config.valid), ("test", config.test))
        if names_a_split(name, split) or name == "train"
    }
    data = {name: load_split(config, split, streaming=True) for name, split in chosen.items()}
    version = _version(config)
    streams = {name: HubStream(config, chosen[name], data[name], version) for name in data}
    pairs = {
        name: _read(stream, config.buffer if name == "train" else None)
        for name, stream in streams.items()
    }
    provenance = {"data set": config.hub_path, "revision": config.hub_revision or "latest"}
    if config.hub_name is not None:
        provenance["configuration"] = config.hub_name
    note(
        f"{config.name}: {streams['train'].name} is read as a stream; tokenizer, counts of "
        f"translations and held-out splits come from {len(pairs['train']):,} of its pairs"
    )
    try:
        corpus = assemble(
            config,
            pairs["train"],
            pairs.get("valid"),
            pairs.get("test"),
            licence=data["train"].info.license or "see the data set's page",
            attribution=f"Data set {config.hub_path}",
            provenance=provenance,
        )
    except DataError as error:
        raise DataError(
            f"{error} (of the stream {len(pairs['train']):,} pairs were looked at; a larger "
            "data.buffer takes more of them)"
        ) from error
    given = {name: split for name, split in pairs.items() if name != "train"}
    cleaned = {"valid": corpus.valid, "test": corpus.test}
    screen = Screen(config, given, corpus.held_out, cleaned)
    corpus.ledger = _of_splits(corpus.ledger)
    corpus.stream = TrainingStream(streams["train"], screen, config.buffer, len(pairs["train"]))
    return corpus


def _of_splits(ledger: Ledger) -> Ledger:
    """Without the sample's entries: the stream makes the same ones when it passes these pairs."""
    others = Ledger()
    for entry in ledger:
        if entry.split != "train":
            others.add(entry.split, entry.file, entry.line, entry.side, entry.reason, entry.action)
    return others


class HubStream:
    """The pairs of a split, shard by shard."""

    def __init__(self, config: DataConfig, split: str, data: Any, version: str) -> None:
        self.name = f"{config.hub_path} ({split})"
        self.version = version
        self.n_shards = int(data.num_shards)
        self._sides = columns(config)
        self._data = data.with_format("arrow")
        # What it logs, try after try, is in our one error when it gives up.
        logging.getLogger("datasets").setLevel(logging.CRITICAL)

    def tables(self, shard: int) -> "Iterator[pa.Table]":
        """The columns of source and target.

        Raises CorpusError where reading breaks off, DataError when one of them isn't there.
        """
        import pyarrow as pa
        from datasets.exceptions import DatasetsError

        row = 0
        try:
            for table in self._data.shard(self.n_shards, shard).iter(_AT_A_TIME):
                found = _flat(table)
                check_fields(self.name, self._sides, found.column_names)
                row += len(found)
                yield found.select(self._sides)
        # The hub's client and the file systems raise OSError (ConnectionError), after many tries.
        # A file that is not what its name says is an ArrowException or a ValueError.
        except (
            OSError,
            ValueError,
            pa.ArrowException,
            DatasetsError,
            *DECOMPRESSION_ERRORS,
        ) as error:
            reason = " ".join(str(error).split())
            raise CorpusError(
                f"{shard_name(self, shard)}, after row {row:,}: reading broke off ({reason}); "
                "what was trained so far is in the run's checkpoints, from which it can go on "
                "once the data set can be read again"
            ) from error

    def texts(self, part: Part) -> tuple[list[str], list[str]]:
        """Sources and targets; raises DataError for what is not text."""
        where = shard_name(self, part.shard)
        source, target = (column_texts(part.table, k, where, part.row) for k in range(2))
        return source, target


def _version(config: DataConfig) -> str:
    """A hash of all that is read: a folder's files, or the hub's, whose names hold the commit.

    Raises CorpusError when the hub can't be asked.
    """
    import datasets
    from datasets.exceptions import DatasetsError

    folder = expand(config.hub_path or "")
    if folder.is_dir():
        hashes = hash_folder(folder)
        # Wherever the folder lies.
        content = {str(Path(path).relative_to(folder)): hashes[path] for path in hashes}
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:24]
    try:
        builder = datasets.load_dataset_builder(
            config.hub_path, config.hub_name, revision=config.hub_revision
        )
    except (OSError, ValueError, RuntimeError, DatasetsError) as error:
        reason = " ".join(str(error).split())
        raise CorpusError(
            f"cannot ask the hub for the files of {config.hub_path!r} ({reason}); check the "
            "network connection"
        ) from error
    names = sorted(name for files in builder.config.data_files.values() for name in files)
    return hashlib.sha256(json.dumps(names).encode()).hexdigest()[:24]


def _flat(table: "pa.Table") -> "pa.Table":
    """Fields of fields by their dotted names: translation {de, en} is translation.de and .en."""
    import pyarrow as pa

    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    return table


def _read(stream: HubStream, most: int | None) -> Pairs:
    """All pairs, or `most` of them: the first ones of shards at even distances.

    Raises DataError when there are none.
    """
    n = stream.n_shards if most is None else min(stream.n_shards, SAMPLED_SHARDS)
    parts: list[Part] = []
    size = 0
    for k in range(n):
        share = None if most is None else -(-(most - size) // (n - k))
        for part in _first(stream, k * stream.n_shards // n, share):
            parts.append(part)
            size += len(part.table)
    if not size:
        raise DataError(f"{stream.name}: there are no pairs in it")
    return pairs_of(stream, parts)


def _first(stream: HubStream, shard: int, most: int | None) -> Iterator[Part]:
    row = 0
    for table in stream.tables(shard):
        part = table.slice(0, None if most is None else most - row)
        yield Part(shard, row, part)
        row += len(part)
        if row == most:
            return
