"""Pairs that are too long to be trained on."""

import numpy as np
import numpy.typing as npt

from kakehashi.data.batching import FlatCorpus
from kakehashi.data.integrity import sides
from kakehashi.data.ledger import Ledger
from kakehashi.data.pairs import Pairs


def short_enough(
    tokens: FlatCorpus, pairs: Pairs, max_length: int, ledger: Ledger
) -> npt.NDArray[np.int64]:
    """The rows with at most `max_length` pieces on each side; the others go into the ledger."""
    source, target = tokens.source_lengths > max_length, tokens.target_lengths > max_length
    for i in np.flatnonzero(source | target).tolist():
        side = sides(bool(source[i]), bool(target[i]))
        assert side is not None
        ledger.add("train", *pairs.place(i), side, f"more than {max_length} pieces")
    return np.flatnonzero(~(source | target))
