"""What computes for a translator: a search and a forced reading over piece numbers, no text."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from kakehashi.decoding.config import DecodingConfig
from kakehashi.decoding.hypothesis import Hypothesis
from kakehashi.decoding.methods import BEAM, Method
from kakehashi.decoding.rules import Rules

T = TypeVar("T")
R = TypeVar("R")
Row = Sequence[int]
"""Piece numbers of a sentence, without BOS and EOS."""


@dataclass(frozen=True)
class Followed:
    """A translation that was given, read by a model from left to right (forced decoding)."""

    log_probabilities: tuple[float, ...]
    """Natural logarithm, of each of the N pieces given those before it, and of EOS after them."""
    attention: npt.NDArray[np.float32] | None = None
    """[N + 1, M + 1]: where on the source's M pieces and its EOS the decoder looked for each of the
    N pieces and EOS, by the model's choice of layer, head and step (``AlignmentChoice``); None
    where it was not asked for."""


class Engine(Protocol):
    """Runs one model, or several as one.

    Sentences that are handed in together are decoded together; what comes out for one does not
    depend on the others (scores within 1e-4).
    """

    name: str
    """As ``--engine`` has it."""

    def each(self, work: Callable[[T], R], batches: Sequence[T]) -> Iterator[R]:
        """``map(work, batches)``, in order: side by side where that is how this engine is fastest.

        Args:
            work: a search and what belongs to it. Several threads may call it at once.
            batches: what it is called with.
        """

    def search(
        self,
        rows: Sequence[Row],
        *,
        config: DecodingConfig,
        method: Method = BEAM,
        n_best: int = 1,
        rules: Sequence[Rules] | None = None,
        allow_unknown: bool = False,
    ) -> list[list[Hypothesis]]:
        """Translations of each sentence, at least one; see ``decoding.search``.

        Raises:
            ConfigError: for what this engine cannot do.
        """

    def follow(
        self, rows: Sequence[Row], targets: Sequence[Row], *, attending: bool = False
    ) -> list[Followed]:
        """Read a translation of each sentence; ``attending`` asks for the attention too."""
