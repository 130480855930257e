"""Sentences without their weight: UTF-8 in one buffer, made into strings when they are asked for.

A list of strings costs some 60 bytes a sentence more than its text, and lives in memory; ten
million pairs of them are more than most machines have. These are two files, memory-mapped.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, overload

import numpy as np
import numpy.typing as npt

from kakehashi.data.ranges import places_of
from kakehashi.errors import DataError

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]

_AT_A_TIME = 10_000
# What is in a JSON file may be half of a surrogate pair, which strict UTF-8 has no bytes for.
_ENCODING = ("utf-8", "surrogatepass")


class Texts(Sequence[str]):
    """Text i is content[starts[i]:ends[i]]; a selection shares its content with the whole."""

    def __init__(self, content: Bytes, starts: Places, ends: Places) -> None:
        self._content, self._starts, self._ends = content, starts, ends
        self._view = content.data

    @classmethod
    def load(cls, folder: Path, name: str) -> Self:
        """Memory-map what a `TextWriter` wrote; raises DataError when it is damaged."""
        path = folder / f"{name}.utf8"
        try:
            size = path.stat().st_size
            content = np.memmap(path, np.uint8, "r") if size else np.empty(0, np.uint8)
            bounds = np.load(folder / f"{name}.bounds.npy", mmap_mode="r")
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"{folder} is damaged ({error}); remove it, it is remade") from error
        if bounds.dtype != np.int64 or bounds.ndim != 1 or not len(bounds) or bounds[-1] != size:
            raise DataError(f"{folder} is damaged ({name}: its parts disagree); remove it")
        return cls(content, bounds[:-1], bounds[1:])

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> "Texts": ...
    def __getitem__(self, index: int | slice) -> "str | Texts":
        if isinstance(index, slice):
            return Texts(self._content, self._starts[index], self._ends[index])
        return str(self._view[self._starts[index] : self._ends[index]], *_ENCODING)

    def __iter__(self) -> Iterator[str]:
        view = self._view
        for start in range(0, len(self), _AT_A_TIME):
            part = slice(start, start + _AT_A_TIME)
            for first, end in zip(
                self._starts[part].tolist(), self._ends[part].tolist(), strict=True
            ):
                yield str(view[first:end], *_ENCODING)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def take(self, indices: Places) -> "Texts":
        """The texts at `indices`, in that order."""
        return Texts(self._content, self._starts[indices], self._ends[indices])

    def sizes(self) -> Places:
        """Bytes of each text."""
        return self._ends - self._starts

    def chunks(self) -> Iterator[memoryview]:
        """All texts, one after the other without anything between them, some at a time."""
        for first in range(0, len(self), _AT_A_TIME):
            starts, ends = (
                self._starts[first : first + _AT_A_TIME],
                self._ends[first : first + _AT_A_TIME],
            )
            if np.array_equal(starts[1:], ends[:-1]):
                yield self._view[starts[0] : ends[-1]]
                continue
            yield self._content[places_of(starts, ends - starts)].data


def sizes_of(texts: Sequence[str]) -> Places:
    """Bytes of each text in UTF-8."""
    if isinstance(texts, Texts):
        return texts.sizes()
    return np.fromiter((len(text.encode(*_ENCODING)) for text in texts), np.int64, len(texts))


def chunks_of(texts: Sequence[str]) -> Iterator[memoryview | bytes]:
    """The UTF-8 of all texts, one after the other, some at a time."""
    if isinstance(texts, Texts):
        yield from texts.chunks()
        return
    for start in range(0, len(texts), _AT_A_TIME):
        yield "".join(texts[start : start + _AT_A_TIME]).encode(*_ENCODING)


class TextWriter:
    """Writes `name`.utf8 and `name`.bounds.npy into a folder, a text at a time."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._stream = (folder / f"{name}.utf8").open("wb", buffering=1 << 20)
        self._sizes: list[Places] = []
        self._recent: list[int] = []

    def add(self, text: str) -> None:
        """Write one text."""
        encoded = text.encode(*_ENCODING)
        self._stream.write(encoded)
        self._recent.append(len(encoded))
        if len(self._recent) == _AT_A_TIME:
            self._settle()

    def _settle(self) -> None:
        self._sizes.append(np.array(self._recent, np.int64))
        self._recent = []

    def extend(self, texts: Sequence[str]) -> None:
        """Write many texts."""
        self._settle()
        for chunk in chunks_of(texts):
            self._stream.write(chunk)
        self._sizes.append(sizes_of(texts))

    def close(self) -> None:
        """Write the bounds; only then can the texts be loaded."""
        self._stream.close()
        self._settle()
        bounds = np.concatenate([np.zeros(1, np.int64), *self._sizes])
        np.save(self._folder / f"{self._name}.bounds.npy", np.cumsum(bounds, out=bounds))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._stream.close()


def write_texts(folder: Path, name: str, texts: Iterable[str]) -> Texts:
    """Write texts as they come and map them."""
    with TextWriter(folder, name) as writer:
        for text in texts:
            writer.add(text)
    return Texts.load(folder, name)
