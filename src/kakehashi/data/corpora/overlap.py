"""Training pairs that valid or test know: reported, or left out."""

from collections.abc import Collection, Mapping

import numpy as np

from kakehashi.data.integrity import Sentences, overlaps
from kakehashi.data.ledger import Action, Ledger
from kakehashi.data.pairs import Pairs


class Overlap:
    """Training pairs that share a sentence with valid or test, each entered once for either."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._entered: set[tuple[str, str, int]] = set()

    def check(
        self, train: Pairs, splits: Mapping[str, Pairs | Sentences], dropped: Collection[str]
    ) -> Pairs:
        """Train, without the pairs that share a sentence with one of the splits in `dropped`.

        A pair is left out once: for the first of them.
        """
        kept = np.ones(len(train), bool)
        for name, found in zip(splits, overlaps(train, list(splits.values())), strict=True):
            action: Action = "left out" if name in dropped else "kept"
            for i, side in found.items():
                place = train.place(i)
                if kept[i] and (name, *place) not in self._entered:
                    self._entered.add((name, *place))
                    self._ledger.add("train", *place, side, f"sentence also in {name}", action)
            if name in dropped:
                kept[list(found)] = False
        return train if kept.all() else train.select(np.flatnonzero(kept))
