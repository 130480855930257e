"""A corpus from the user's own files: one or several of them, or several corpora with weights."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kakehashi.data.config import DataConfig, PartConfig, SplitConfig
from kakehashi.data.corpora.base import Corpus, Part, assemble
from kakehashi.data.corpora.ingest import ingest
from kakehashi.data.corpora.prepared import hash_files, prepared
from kakehashi.data.pairs import Pairs
from kakehashi.data.shards import ShardFiles, find_shards
from kakehashi.errors import ConfigError


def load_files(config: DataConfig) -> Corpus:
    """Read the files of `config.train` and, where given, of `config.valid` and `config.test`.

    With `kind: mixture` the training files are those of `config.corpora`, one corpus after the
    other. Paths start at the working folder. What was read, checked and split is kept in the cache
    and found again as long as no byte of the files changes. Raises ConfigError when there is no
    training file, and DataError for files that can't be read or paired.
    """
    parts = _parts(config)
    given = {"valid": config.valid, "test": config.test}
    for name, split in given.items():
        if split.split is not None:
            raise ConfigError(f"data.{name}.split names a split on the hub; files have a path")
    shards = {name: _shards(part, config) for name, part in parts.items()}
    others = {name: _shards(split, config) for name, split in given.items() if split.given}
    content = hash_files(
        path
        for files in (*shards.values(), *others.values())
        for shard in files
        for path in shard.paths
    )

    def make(folder: Path) -> Corpus:
        every = [shard for files in shards.values() for shard in files]
        origin = ", ".join(_origin(part) for part in parts.values())
        train = ingest(every, origin, folder, "train")
        splits = {
            name: ingest(files, _origin(given[name]), folder, name)
            for name, files in others.items()
        }
        return assemble(
            config,
            train,
            splits.get("valid"),
            splits.get("test"),
            licence="not stated (the user's own files)",
            attribution="",
            provenance={path: f"sha256 {digest}" for path, digest in content.items()},
            parts=_bounds(config.corpora, shards, train),
        )

    return prepared(config, content, make)


def _parts(config: DataConfig) -> dict[str, SplitConfig]:
    """Where the training pairs come from."""
    parts: dict[str, SplitConfig]
    if config.kind == "mixture":
        if not config.corpora or config.train.given:
            raise ConfigError(
                "data.kind=mixture takes its training pairs from data.corpora and from nowhere "
                "else: '+data.corpora.NAME.path=FILE' for each corpus (or .source and .target)"
            )
        parts = dict(config.corpora)
    else:
        parts = {"train": config.train}
    for name, part in parts.items():
        where = "data.train" if config.kind == "files" else f"data.corpora.{name}"
        if part.split is not None:
            raise ConfigError(f"{where}.split names a split on the hub; files have a path")
        if not part.given:
            raise ConfigError(
                f"no training files: give {where}.source=FILE {where}.target=FILE, or "
                f"{where}.path=FILE (.tsv, .csv, .jsonl or .parquet)"
            )
    return parts


def _shards(split: SplitConfig, config: DataConfig) -> list[ShardFiles]:
    source, target = config.source_column, config.target_column
    if isinstance(split, PartConfig):
        source, target = split.source_column or source, split.target_column or target
    return find_shards(split, source, target, (config.source_language, config.target_language))


def _origin(split: SplitConfig) -> str:
    return split.path or f"{split.source}, {split.target}"


def _bounds(
    corpora: Mapping[str, PartConfig], shards: Mapping[str, Sequence[ShardFiles]], train: Pairs
) -> tuple[Part, ...]:
    """Up to which of train's line numbers each corpus goes."""
    parts, n = [], 0
    for name, part in corpora.items():
        n += len(shards[name])
        last = n == len(train.shards) or not train.shards
        until = int(train.lines[-1]) if last else train.shards[n].before
        parts.append(Part(name, part.weight, until))
    return tuple(parts)
