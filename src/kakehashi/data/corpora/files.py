"""A corpus from the user's own files."""

import hashlib
from pathlib import Path

from kakehashi.data.config import DataConfig, SplitConfig
from kakehashi.data.corpora.base import Corpus, assemble
from kakehashi.data.pairfiles import read_plain, read_table
from kakehashi.data.pairs import Pairs
from kakehashi.data.reading import content_suffix, open_bytes
from kakehashi.errors import ConfigError


def load_files(config: DataConfig) -> Corpus:
    """Read the files of `config.train` and, where given, of `config.valid` and `config.test`.

    Paths start at the working folder. Raises ConfigError when there is no training file, and
    DataError for files that can't be read or paired.
    """
    if not config.train.given:
        raise ConfigError(
            "no training files: give data.train.source=FILE data.train.target=FILE, or "
            "data.train.path=FILE (.tsv, .csv, .jsonl or .parquet)"
        )
    splits = {"train": config.train, "valid": config.valid, "test": config.test}
    for name, split in splits.items():
        if split.split is not None:
            raise ConfigError(f"data.{name}.split names a split on the hub; files have a path")
    given = {name: split for name, split in splits.items() if split.given}
    pairs = {name: _read(split, config) for name, split in given.items()}
    return assemble(
        config,
        pairs["train"],
        pairs.get("valid"),
        pairs.get("test"),
        licence="not stated (the user's own files)",
        attribution="",
        provenance={
            f"{name} {Path(path).name}": f"sha256 {_sha256(path)}"
            for name, split in given.items()
            for path in (split.source, split.target, split.path)
            if path is not None
        },
    )


def _read(split: SplitConfig, config: DataConfig) -> Pairs:
    if split.source is not None and split.target is not None:
        return read_plain(split.source, split.target)
    assert split.path is not None
    source, target = config.source_column, config.target_column
    if content_suffix(split.path) not in (".tsv", ".csv"):
        source = source or config.source_language
        target = target or config.target_language
    return read_table(split.path, source, target)


def _sha256(path: str) -> str:
    """Of the text, whatever the compression."""
    digest = hashlib.sha256()
    with open_bytes(path) as stream:
        while part := stream.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()
