"""Tokenised splits on disk: flat arrays of piece numbers, made once and memory-mapped."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kakehashi.data.batching import FlatCorpus
from kakehashi.data.cache import new_folder
from kakehashi.data.pairs import Pairs
from kakehashi.data.progress import Meter
from kakehashi.data.reading import expand
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.errors import DataError

_LAYOUT = "2"
"""Goes into the key: raise it when the files' meaning changes."""
_LINES_AT_A_TIME = 20_000

Rows = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]
"""The pieces of some texts one after the other, and the length of each."""


def tokenise(pairs: Pairs, tokenizer: Tokenizer) -> FlatCorpus:
    """The pairs as piece numbers without specials, in memory."""
    sides = []
    for texts in (pairs.source, pairs.target):
        parts = list(_encoded(texts, tokenizer))
        sides.append(np.concatenate([np.empty(0, np.int32), *(ids for ids, _ in parts)]))
        sides.append(_offsets([lengths for _, lengths in parts]))
    return FlatCorpus(*sides)


def cached(pairs: Pairs, tokenizer: Tokenizer, root: str | Path) -> FlatCorpus:
    """The tokenised pairs from `root`/cache, made and kept there if they aren't yet.

    The key is the sentences' and the tokenizer's content, so nothing stale is ever used. They are
    written as they are made, and memory-mapped: however large, they never are in memory as a
    whole. Raises DataError when the folder can't be written or is damaged.
    """
    key = hashlib.sha256(f"{_LAYOUT} {tokenizer.fingerprint} {pairs.digest()}".encode())
    folder = expand(root) / "cache" / key.hexdigest()[:24]
    if not folder.exists():
        with (
            new_folder(folder) as temporary,
            Meter("Tokenising", "sentences", 2 * len(pairs)) as meter,
        ):
            for side, texts in (("source", pairs.source), ("target", pairs.target)):
                _write(texts, tokenizer, temporary, side, meter)
    return FlatCorpus(*_load(folder, "source", len(pairs)), *_load(folder, "target", len(pairs)))


def _write(
    texts: Sequence[str], tokenizer: Tokenizer, folder: Path, side: str, meter: Meter
) -> None:
    lengths = []
    with (folder / f"{side}.ids").open("wb") as stream:
        for ids, of_each in _encoded(texts, tokenizer):
            stream.write(ids.astype("<i4", copy=False).tobytes())
            lengths.append(of_each)
            meter.did(len(of_each))
            meter.count(len(of_each))
    np.save(folder / f"{side}_offsets.npy", _offsets(lengths))


def _load(folder: Path, side: str, n: int) -> Rows:
    path = folder / f"{side}.ids"
    try:
        size = path.stat().st_size
        ids = np.memmap(path, "<i4", "r") if size else np.empty(0, np.int32)
        offsets = np.load(folder / f"{side}_offsets.npy", mmap_mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{folder} is damaged ({error}); remove it, it will be remade") from error
    if len(offsets) != n + 1 or int(offsets[-1]) != len(ids) or size != 4 * len(ids):
        raise DataError(f"{folder} is damaged (its parts disagree); remove it, it will be remade")
    return ids, offsets


def _encoded(texts: Sequence[str], tokenizer: Tokenizer) -> Iterator[Rows]:
    for start in range(0, len(texts), _LINES_AT_A_TIME):
        rows = tokenizer.encode_batch(list(texts[start : start + _LINES_AT_A_TIME]))
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        yield np.fromiter((i for row in rows for i in row), np.int32, int(lengths.sum())), lengths


def _offsets(lengths: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    return np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths]))
