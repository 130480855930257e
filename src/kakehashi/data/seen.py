"""Whether a sentence was in the training text, told from hashes that are small enough to keep.

A model folder keeps one file of them, so that a test set can be held against the training text long
after, and wherever, the model was trained. 8 bytes a distinct sentence of a side, no text.
"""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import safetensors.numpy
from safetensors import SafetensorError, safe_open

from kakehashi.data.integrity import fingerprints
from kakehashi.data.reading import is_blank
from kakehashi.errors import DataError

Side = Literal["source", "target"]

_NAME, _CHECKSUM = "hashes", "sha256"


class TrainingSentences:
    """The sentences of a training text, as hashes.

    Sentences that differ in case, spacing, punctuation or compatibility forms alone are the same,
    see ``normalised``; the sides are kept apart. Of 64 bits, a sentence that was not in a training
    text of ten million pairs is taken for one of it once in a million million sentences.
    """

    def __init__(self, hashes: npt.NDArray[np.uint64]) -> None:
        self._hashes = hashes

    @classmethod
    def of(cls, sources: Iterable[str], targets: Iterable[str]) -> "TrainingSentences":
        """Those of a corpus, read once."""
        both = fingerprints(sources, b"source"), fingerprints(targets, b"target")
        return cls(np.unique(np.concatenate(both)))

    def __len__(self) -> int:
        """Distinct sentences, both sides together."""
        return len(self._hashes)

    def lines_in(self, sentences: Sequence[str], side: Side) -> list[int]:
        """Numbers, from 1, of the sentences that stand on this side of the training text.

        Blank ones never do: training leaves them out.
        """
        asked = fingerprints(sentences, side.encode())
        found = np.isin(asked, self._hashes, kind="sort")
        numbers = (np.flatnonzero(found) + 1).tolist()
        return [number for number in numbers if not is_blank(sentences[number - 1])]

    def to_bytes(self) -> bytes:
        """A safetensors file: the hashes in rising order, and their SHA-256."""
        checksum = hashlib.sha256(self._hashes.tobytes()).hexdigest()
        return safetensors.numpy.save({_NAME: self._hashes}, metadata={_CHECKSUM: checksum})

    @classmethod
    def load(cls, path: Path) -> "TrainingSentences":
        """Read such a file.

        Raises:
            DataError: when it cannot be read, or is not what was written.
        """
        try:
            with safe_open(path, framework="numpy") as file:
                checksum, hashes = (file.metadata() or {}).get(_CHECKSUM), file.get_tensor(_NAME)
        except (SafetensorError, OSError, ValueError) as error:
            raise DataError(
                f"{path} is damaged ({error}); copy it again, or remove it to go without"
            ) from error
        if hashlib.sha256(hashes.tobytes()).hexdigest() != checksum:
            raise DataError(
                f"{path} is damaged (its SHA-256 is another one); copy it again, or remove it to "
                "go without"
            )
        return cls(hashes)
