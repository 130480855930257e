"""Which pieces of a sentence pair translate each other, found without looking at any attention.

Whether a head aligns cannot be judged by alignments that were read off that model's attention. IBM
Model 1 counts which pieces go together in a text (``training.lexicon``); a link is taken where two
pieces are each other's strongest and no other place ties with them. Such links are few and sure.
"""

from collections.abc import Sequence

import numpy as np

from kakehashi.data.batching import FlatCorpus
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.errors import DataError
from kakehashi.symbols import EOS
from kakehashi.training.lexicon import learn_lexicon, tie_weights

Links = tuple[tuple[int, int], ...]
"""Places (source, target) of pieces, from 0."""


class LexicalLinks:
    """The lexicon of a text, asked for the links of sentence pairs.

    Args:
        tokenizer: of the pieces.
        source: the text.
        target: its translation, line by line.

    Raises:
        DataError: for a text of which no sentence can be counted.
    """

    def __init__(self, tokenizer: Tokenizer, source: Sequence[str], target: Sequence[str]) -> None:
        corpus = _flat(tokenizer.encode_batch(source), tokenizer.encode_batch(target))
        lexicon = learn_lexicon(corpus, tokenizer.vocab_size)
        if not len(lexicon.source):
            raise DataError("the text to learn a lexicon from has no sentence short enough for it")
        weights = tie_weights(lexicon, tokenizer.vocab_size).tolist()
        pairs = zip(lexicon.source.tolist(), lexicon.target.tolist(), strict=True)
        self._weights = dict(zip(pairs, weights, strict=True))

    def links(self, source: Sequence[int], target: Sequence[int]) -> Links:
        """Places that are each other's strongest; EOS competes, but a link to it is none."""
        table = np.array(
            [
                [self._weights.get((one, other), 0.0) for other in (*target, EOS)]
                for one in (*source, EOS)
            ]
        )
        rows, columns = _sole_best(table), _sole_best(table.T)
        return tuple(
            (i, j) for j, i in enumerate(columns[:-1]) if 0 <= i < len(source) and rows[i] == j
        )


def _sole_best(table: np.ndarray) -> list[int]:
    """Each row's greatest place; -1 where nothing goes together, or two places tie."""
    best = table.max(axis=1, keepdims=True)
    sole = ((table == best).sum(axis=1) == 1) & (best[:, 0] > 0)
    return np.where(sole, table.argmax(axis=1), -1).tolist()  # type: ignore[no-any-return]


def _flat(source: Sequence[Sequence[int]], target: Sequence[Sequence[int]]) -> FlatCorpus:
    ids = [np.fromiter((i for row in rows for i in row), np.int32) for rows in (source, target)]
    ends = [np.cumsum([0, *map(len, rows)]).astype(np.int64) for rows in (source, target)]
    return FlatCorpus(ids[0], ends[0], ids[1], ends[1])
