"""Tokenised splits on disk: flat arrays of piece numbers, made once and memory-mapped."""

import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kakehashi.data.batching import FlatCorpus
from kakehashi.data.pairs import Pairs
from kakehashi.data.reading import expand, sync_folder
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.errors import DataError

_ARRAYS = ("source_ids", "source_offsets", "target_ids", "target_offsets")
_LAYOUT = "1"
"""Goes into the key: raise it when the files' meaning changes."""
_LINES_AT_A_TIME = 20_000


def tokenise(pairs: Pairs, tokenizer: Tokenizer) -> FlatCorpus:
    """The pairs as piece numbers without specials, in memory."""
    return FlatCorpus(*_flat(pairs.source, tokenizer), *_flat(pairs.target, tokenizer))


def cached(pairs: Pairs, tokenizer: Tokenizer, root: str | Path) -> FlatCorpus:
    """The tokenised pairs from `root`/cache, made and kept there if they aren't yet.

    The key is the sentences' and the tokenizer's content, so nothing stale is ever used. The
    arrays are memory-mapped. Raises DataError when the folder can't be written or is damaged.
    """
    key = hashlib.sha256(f"{_LAYOUT} {tokenizer.fingerprint} {pairs.digest()}".encode())
    folder = expand(root) / "cache" / key.hexdigest()[:24]
    if not folder.exists():
        _store(tokenise(pairs, tokenizer), folder)
    try:
        arrays = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in _ARRAYS]
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{folder} is damaged ({error}); remove it, it will be remade") from error
    corpus = FlatCorpus(*arrays)
    ends = (len(corpus.source_ids), len(corpus.target_ids))
    if len(corpus) != len(pairs) or ends != (
        int(corpus.source_offsets[-1]),
        int(corpus.target_offsets[-1]),
    ):
        raise DataError(f"{folder} is damaged (its parts disagree); remove it, it will be remade")
    return corpus


def _flat(
    texts: Sequence[str], tokenizer: Tokenizer
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    ids: list[npt.NDArray[np.int32]] = [np.empty(0, np.int32)]
    lengths: list[int] = []
    for rows in _encoded(texts, tokenizer):
        lengths.extend(map(len, rows))
        ids.append(np.fromiter((i for row in rows for i in row), np.int32))
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return np.concatenate(ids), offsets


def _encoded(texts: Sequence[str], tokenizer: Tokenizer) -> Iterator[list[list[int]]]:
    for start in range(0, len(texts), _LINES_AT_A_TIME):
        yield tokenizer.encode_batch(texts[start : start + _LINES_AT_A_TIME])


def _store(corpus: FlatCorpus, folder: Path) -> None:
    """Write the arrays into a temporary neighbour, then rename it into place."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".part-"))
        try:
            for name in _ARRAYS:
                np.save(temporary / f"{name}.npy", getattr(corpus, name))
            sync_folder(temporary)
            try:
                temporary.rename(folder)
            except OSError:
                # Another process has made the same arrays meanwhile.
                if not folder.exists():
                    raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise DataError(f"cannot write {folder}: {error.strerror or error}") from error
