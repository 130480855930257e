"""Corpora that were read, checked and split once, and are found again by what they were made of.

The key is the content of the files, hashed anew at each start (a gigabyte a second), and every
setting that reading, checking and splitting depend on. Names and times of files prove nothing and
are not asked.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from kakehashi.data.cache import new_folder
from kakehashi.data.config import DataConfig
from kakehashi.data.corpora.base import Corpus, Part
from kakehashi.data.ledger import Ledger
from kakehashi.data.pairs import Pairs, Shard
from kakehashi.data.reading import expand, open_raw
from kakehashi.data.texts import Texts, TextWriter
from kakehashi.errors import DataError

_LAYOUT = "2"
"""Goes into the key: raise it when the files' meaning changes, or what is made of the same text."""
_LATER = (
    "name",
    "root",
    "max_length",
    "batch_tokens",
    "validation_batch_tokens",
    "workers",
    "temperature",
    "streaming",
    "buffer",
)
"""Settings that come into play once a corpus is prepared, or never do."""
_SPLITS = ("train", "valid", "test")


def prepared(config: DataConfig, content: dict[str, str], make: Callable[[Path], Corpus]) -> Corpus:
    """The corpus from `config.root`/cache, made and kept there if it isn't yet.

    `content` is the name and the hash of all that is read; `make` is given a folder for text that
    does not fit in memory, which is gone afterwards. Raises DataError when the cache can't be
    written or is damaged.
    """
    settings = {name: value for name, value in asdict(config).items() if name not in _LATER}
    made_of = [_LAYOUT, version("kakehashi"), settings, content]
    key = hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:24]
    folder = expand(config.root) / "cache" / f"corpus-{key}"
    if not folder.exists():
        with new_folder(folder) as temporary:
            raw = temporary / "raw"
            raw.mkdir()
            _save(make(raw), temporary)
            for path in raw.iterdir():
                path.unlink()
            raw.rmdir()
    return _load(folder, config)


def hash_files(paths: Iterable[str]) -> dict[str, str]:
    """The SHA-256 of each file as it lies on the disk; raises DataError naming what is missing."""
    hashes = {}
    for path in paths:
        with open_raw(path) as stream:
            hashes[path] = hashlib.file_digest(stream, "sha256").hexdigest()
    return hashes


def _save(corpus: Corpus, folder: Path) -> None:
    about: dict[str, Any] = {
        "licence": corpus.licence,
        "attribution": corpus.attribution,
        "provenance": corpus.provenance,
        "read": corpus.read,
        "parts": [asdict(part) for part in corpus.parts],
    }
    for split in _SPLITS:
        pairs: Pairs = getattr(corpus, split)
        for side in ("source", "target"):
            with TextWriter(folder, f"{split}-{side}") as writer:
                writer.extend(getattr(pairs, side))
        np.save(folder / f"{split}-lines.npy", np.asarray(pairs.lines, np.int64))
        about[split] = {
            "origin": pairs.origin,
            "shards": [asdict(shard) for shard in pairs.shards],
        }
    corpus.ledger.write(folder / "ledger.jsonl")
    (folder / "about.json").write_text(json.dumps(about, ensure_ascii=False), encoding="utf-8")


def _load(folder: Path, config: DataConfig) -> Corpus:
    try:
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        lines = {split: np.load(folder / f"{split}-lines.npy", mmap_mode="r") for split in _SPLITS}
        ledger = Ledger.read(folder / "ledger.jsonl")
    except (OSError, ValueError, EOFError, KeyError, TypeError) as error:
        raise DataError(f"{folder} is damaged ({error}); remove it, it will be remade") from error
    splits = {}
    for split in _SPLITS:
        source, target = (Texts.load(folder, f"{split}-{side}") for side in ("source", "target"))
        if not len(source) == len(target) == len(lines[split]):
            raise DataError(f"{folder} is damaged ({split}: its parts disagree); remove it")
        shards = tuple(Shard(**shard) for shard in about[split]["shards"])
        splits[split] = Pairs(source, target, about[split]["origin"], lines[split], shards)
    return Corpus(
        name=config.name,
        source_language=config.source_language,
        target_language=config.target_language,
        licence=about["licence"],
        attribution=about["attribution"],
        provenance=about["provenance"],
        parts=tuple(Part(**part) for part in about["parts"]),
        ledger=ledger,
        read=about["read"],
        train=splits["train"],
        valid=splits["valid"],
        test=splits["test"],
    )
