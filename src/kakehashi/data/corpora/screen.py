"""Which pairs of a stream are trained on: what `assemble` does to a corpus, in parts."""

from collections.abc import Mapping

import numpy as np

from kakehashi.data.config import DataConfig
from kakehashi.data.corpora.overlap import Overlap
from kakehashi.data.filters import filter_pairs
from kakehashi.data.integrity import Sentences, drop_blank, enter_controls
from kakehashi.data.ledger import Ledger
from kakehashi.data.pairs import Pairs


class Screen:
    """The checks and filters of training pairs, by the same functions as in memory."""

    def __init__(
        self,
        config: DataConfig,
        given: Mapping[str, Pairs],
        held_out: Mapping[str, Pairs],
        cleaned: Mapping[str, Pairs],
    ) -> None:
        """`given` are the splits that came with the corpus, `held_out` those taken out of it.

        Both are as they were read; `cleaned` are the same splits after the filters.
        """
        self._config = config
        raw = {**given, **held_out}
        self._known = {name: _either(pairs, cleaned[name]) for name, pairs in raw.items()}
        self._dropped = set(raw) if config.drop_overlap else set(held_out)
        lines = [np.asarray(pairs.lines, np.int64) for pairs in held_out.values()]
        self._held_out = np.concatenate([np.empty(0, np.int64), *lines])

    def __call__(self, pairs: Pairs, ledger: Ledger) -> tuple[Pairs, int]:
        """The pairs that are trained on, cleaned, and how many of them all are held out.

        The others go into the ledger.
        """
        enter_controls(pairs, "train", ledger)
        pairs = drop_blank(pairs, "train", ledger)
        others = np.isin(pairs.lines, self._held_out, invert=True)
        n_held_out = len(pairs) - int(others.sum())
        if n_held_out:
            pairs = pairs.select(np.flatnonzero(others))
        apart = Overlap(ledger)
        pairs = apart.check(pairs, self._known, self._dropped)
        pairs = filter_pairs(pairs, self._config, "train", ledger)
        if self._config.filters.clean:
            # cleaning may have made sentences equal that weren't
            pairs = apart.check(pairs, self._known, self._dropped)
        return pairs, n_held_out


def _either(raw: Pairs, cleaned: Pairs) -> Sentences:
    one, other = Sentences.of(raw), Sentences.of(cleaned)
    return Sentences(np.union1d(one.source, other.source), np.union1d(one.target, other.target))
