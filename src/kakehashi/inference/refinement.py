"""Word alignments of a whole text, from the attention of both directions and what it agrees on.

Attention knows a sentence; that the same words stand for each other in a thousand others, and that
neighbours stand for neighbours, it does not say. So the two attentions are the emissions of two
hidden Markov models (see ``hidden_markov``), one a direction, and where both agree is counted over
the text: how often each pair of words, and each jump, is expected (Liang, Taskar and Klein, 2006,
"Alignment by Agreement"). With these counts as a lexicon the models are run again, for some rounds
of expectation maximisation. Counts become probabilities by variational Bayes (Riley and Gildea,
2012), or rare words would stand for whatever is near them.

Shapes: B pairs, M source words, N target words, K pairs of different words that occur together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from kakehashi.data.reading import is_blank
from kakehashi.evaluation.links import Links
from kakehashi.inference.hidden_markov import Floats, Ints, expected_states, first_jumps

Half = npt.NDArray[np.float16]

FLOOR = 0.02
"""Added to a word's attention on another one, and that of an empty word."""
PRIOR = 0.001
"""Dirichlet parameter of each word's translations."""
LEAST = 0.6
"""Of a link: geometric mean of its posteriors by both directions."""
PLACES = 60_000
"""Of a batch: pairs times words of the longer side, squared."""
PAIRS = 512


class Batch(NamedTuple):
    """Sentence pairs of like lengths, padded."""

    places: list[int]
    """In the text."""
    source: Ints
    """[B, M]: numbers of words from 1; 0 is padding."""
    target: Ints
    """[B, N]."""
    attention: npt.NDArray[np.float32]
    """[B, M, N]: geometric mean of both directions', 0 at padding."""
    pair: npt.NDArray[np.int32]
    """[B, M, N]: place of the two words in ``Text.keys``."""


@dataclass(frozen=True)
class Text:
    """All sentence pairs that have words on both sides."""

    batches: list[Batch]
    keys: Ints
    """[K], ascending: source word times number of target words, plus target word."""
    source_shares: Floats
    """How much of the text each source word is, by number."""
    target_shares: Floats


@dataclass
class Knowledge:
    """What was counted, and what the models take from it; a lexicon of None holds nothing yet."""

    lexicon: tuple[Floats, Floats] | None = None
    """[K] each: p(target word | source word) and p(source word | target word)."""
    jumps: tuple[Floats, Floats] = field(default_factory=lambda: (first_jumps(), first_jumps()))


def refine(
    pairs: Sequence[tuple[str, str]],
    forward: Sequence[Half],
    backward: Sequence[Half],
    rounds: int,
    prefix: int | None = None,
) -> list[Links]:
    """Align the words of all pairs together.

    Args:
        pairs: sources and translations; words are what white space divides.
        forward: of each pair, [N, M]: each target word's attention on source words (see
            ``scoring.word_attention``), from the model that reads the source.
        backward: [M, N], from the model of the other direction.
        rounds: of counting; 0: attention and positions alone.
        prefix: letters of a word that count; None: all. Case never does.
    """
    text = read_text(pairs, forward, backward, prefix)
    knowledge = Knowledge()
    for _ in range(rounds):
        knowledge = counted(text, knowledge)
    links: list[Links] = [frozenset()] * len(pairs)
    for batch in text.batches:
        forth, back = posteriors(text, batch, knowledge)[:2]
        linked = np.sqrt(forth * back) > LEAST
        for place, at in enumerate(batch.places):
            links[at] = frozenset((int(i), int(j)) for i, j in np.argwhere(linked[place]))
    return links


def read_text(
    pairs: Sequence[tuple[str, str]],
    forward: Sequence[Half],
    backward: Sequence[Half],
    prefix: int | None,
) -> Text:
    """Words become numbers, and pairs batches; see ``refine``."""
    sources, n_sources = _numbered([source for source, _ in pairs], prefix)
    targets, n_targets = _numbered([target for _, target in pairs], prefix)
    whole = [at for at, pair in enumerate(pairs) if not any(map(is_blank, pair))]
    batches = []
    for index in _alike(
        whole, [max(map(len, both)) for both in zip(sources, targets, strict=True)]
    ):
        source, target = (_padded([side[at] for at in index]) for side in (sources, targets))
        attention = np.zeros((*source.shape, target.shape[1]), np.float32)
        for place, at in enumerate(index):
            forth, back = (each[at].astype(np.float32) for each in (forward, backward))
            seen = (forth.T + FLOOR) * (back + FLOOR)
            attention[place, : seen.shape[0], : seen.shape[1]] = np.sqrt(seen)
        keys = source[:, :, None] * n_targets + target[:, None, :]
        batches.append((index, source, target, attention, keys))
    inside = [np.unique(keys[attention > 0]) for _, _, _, attention, keys in batches]
    known = np.unique(np.concatenate([np.empty(0, np.int64), *inside]))
    found = [
        Batch(index, source, target, attention, _places(known, keys))
        for index, source, target, attention, keys in batches
    ]
    return Text(
        found,
        known,
        _shares([batch.source for batch in found], n_sources),
        _shares([batch.target for batch in found], n_targets),
    )


def _places(known: Ints, keys: Ints) -> npt.NDArray[np.int32]:
    """Where each is; anywhere for those of padding."""
    return np.searchsorted(known, keys).clip(max=len(known) - 1).astype(np.int32)


def posteriors(
    text: Text, batch: Batch, knowledge: Knowledge
) -> tuple[Floats, Floats, Floats, Floats]:
    """By the model that reads the source and by the other one [B, M, N], and both's jumps [J]."""
    n_sources, n_targets = (batch.source > 0).sum(axis=1), (batch.target > 0).sum(axis=1)
    shares = [np.full(side.shape, FLOOR) for side in (batch.target, batch.source)]
    weights = [batch.attention.astype(np.float64)] * 2
    if knowledge.lexicon is not None:
        weights = [batch.attention * lexicon[batch.pair] for lexicon in knowledge.lexicon]
        shares = [
            FLOOR * text.target_shares[batch.target],
            FLOOR * text.source_shares[batch.source],
        ]
    forth = expected_states(
        weights[0].transpose(0, 2, 1), shares[0], n_sources, n_targets, knowledge.jumps[0]
    )
    back = expected_states(weights[1], shares[1], n_targets, n_sources, knowledge.jumps[1])
    return forth.posterior.transpose(0, 2, 1), back.posterior, forth.jumps, back.jumps


def counted(text: Text, knowledge: Knowledge) -> Knowledge:
    """What a round learns: links count as much as the product of both models' posteriors."""
    size = len(text.keys)
    links = np.zeros(size)
    jumps = [np.ones(len(each)) for each in knowledge.jumps]
    for batch in text.batches:
        forth, back, *moves = posteriors(text, batch, knowledge)
        links += np.bincount(batch.pair.ravel(), (forth * back).ravel(), minlength=size)
        jumps = [known + new for known, new in zip(jumps, moves, strict=True)]
    sources, targets = np.divmod(text.keys, len(text.target_shares))
    lexicon = (
        _probability(links, sources, len(text.target_shares)),
        _probability(links, targets, len(text.source_shares)),
    )
    return Knowledge(lexicon, (jumps[0] / jumps[0].sum(), jumps[1] / jumps[1].sum()))


def _probability(counts: Floats, given: Ints, vocabulary: int) -> Floats:
    """Of each pair, given one of its words: exp E[log p] under the Dirichlet posterior."""
    total = np.bincount(given, counts)[given]
    one, all_ = (
        torch.special.digamma(torch.from_numpy(each)).numpy()
        for each in (counts + PRIOR, total + PRIOR * vocabulary)
    )
    probability: Floats = np.exp(one - all_)
    return probability


def _numbered(lines: Sequence[str], prefix: int | None) -> tuple[list[Ints], int]:
    """Each line's words by number from 1, and one more than the greatest number."""
    numbers: dict[str, int] = {}
    rows = [
        np.array(
            [numbers.setdefault(word.lower()[:prefix], len(numbers) + 1) for word in line.split()],
            np.int64,
        )
        for line in lines
    ]
    return rows, len(numbers) + 1


def _alike(indices: Sequence[int], lengths: Sequence[int]) -> Iterator[list[int]]:
    batch: list[int] = []
    for at in sorted(indices, key=lambda at: (lengths[at], at)):
        if batch and (len(batch) == PAIRS or (len(batch) + 1) * lengths[at] ** 2 > PLACES):
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch


def _padded(rows: Sequence[Ints]) -> Ints:
    padded = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for place, row in zip(padded, rows, strict=True):
        place[: len(row)] = row
    return padded


def _shares(batches: Sequence[Ints], size: int) -> Floats:
    """Padding counts for something, so that its share is above 0."""
    counts: Floats = np.ones(size)
    for words in batches:
        counts = counts + np.bincount(words[words > 0], minlength=size)
    shares: Floats = counts / counts.sum()
    return shares
