"""Word vectors that already know which pieces translate each other.

A small corpus teaches a model its lexicon slowly: every pair of words has to be found through
layers that attend to nothing yet. IBM Model 1 (Brown et al., 1993) finds most of it by counting,
in seconds. Its symmetrised counts W tie the first vectors together: ``E = normalise((I + W) R)``
with R random, so that pieces which translate each other start close and others nearly orthogonal.

P co-occurring places, U different pairs of pieces, V vocabulary, d width of a vector.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor, nn

from kakehashi.data.batching import FlatCorpus
from kakehashi.symbols import EOS

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

PAIRS = 100_000
"""Sentence pairs that are counted at most, evenly spread: more change little and take longer."""
PLACES = 10_000_000
"""Co-occurrences that are counted at most; some 80 bytes of memory each."""
LONGEST = 40
"""Pieces of a side; longer sentences say least about single words and cost most."""
ITERATIONS = 3


class Lexicon(NamedTuple):
    """Pairs of pieces that occur in the same sentence pair, with how often they are aligned."""

    source: Ints
    target: Ints
    expected: Floats
    """Geometric mean of the expected counts of both directions."""


def learn_lexicon(corpus: FlatCorpus, vocab_size: int, iterations: int = ITERATIONS) -> Lexicon:
    """IBM Model 1 in both directions, by expectation maximisation over all co-occurrences."""
    rows = _sample(corpus)
    source, target, by_source, by_target = _co_occurrences(corpus, rows)
    keys, pair = np.unique(source * vocab_size + target, return_inverse=True)
    sources, targets = keys // vocab_size, keys % vocab_size
    forward = _expected_counts(pair, by_target, sources, iterations, vocab_size)
    backward = _expected_counts(pair, by_source, targets, iterations, vocab_size)
    return Lexicon(sources, targets, np.sqrt(forward * backward))


def tie_weights(lexicon: Lexicon, vocab_size: int) -> Float[Tensor, " U"]:
    """W: each pair's count over the root of its two pieces' totals (each 1 too large)."""
    source, target = torch.from_numpy(lexicon.source), torch.from_numpy(lexicon.target)
    count = torch.from_numpy(lexicon.expected)
    total = torch.ones(2, vocab_size, dtype=torch.float64)
    total[0].index_add_(0, source, count)
    total[1].index_add_(0, target, count)
    return count / (total[0][source] * total[1][target]).sqrt()


def aligned_vectors(
    lexicon: Lexicon, vocab_size: int, width: int, seed: int
) -> Float[Tensor, "V d"]:
    """Unit vectors ``(I + W) R`` (see ``tie_weights``)."""
    source, target = torch.from_numpy(lexicon.source), torch.from_numpy(lexicon.target)
    weight = tie_weights(lexicon, vocab_size)
    generator = torch.Generator().manual_seed(seed)
    random = torch.randn(vocab_size, width, dtype=torch.float64, generator=generator)
    tie = torch.sparse_coo_tensor(
        torch.stack([torch.cat([source, target]), torch.cat([target, source])]),
        torch.cat([weight, weight]),
        (vocab_size, vocab_size),
        check_invariants=False,
    )
    vectors = random + torch.sparse.mm(tie, random)
    return nn.functional.normalize(vectors).float()


@torch.no_grad()
def align_embeddings(model: nn.Module, lexicon: Lexicon, vocab_size: int, seed: int) -> None:
    """Start all word vectors of a model from the lexicon of its training text.

    The rows keep unit norm, the scale of the random start they replace.
    """
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            module.weight.copy_(aligned_vectors(lexicon, vocab_size, module.embedding_dim, seed))


def _sample(corpus: FlatCorpus) -> Ints:
    usable = (corpus.source_lengths < LONGEST) & (corpus.target_lengths < LONGEST)
    rows = np.flatnonzero(usable)
    places = int(_places(corpus, rows).sum())
    return rows[:: max(1, -(-len(rows) // PAIRS), -(-places // PLACES))]


def _places(corpus: FlatCorpus, rows: Ints) -> Ints:
    """M x N of each pair, EOS counted on both sides."""
    source, target = corpus.source_lengths[rows] + 1, corpus.target_lengths[rows] + 1
    return source * target


def _co_occurrences(corpus: FlatCorpus, rows: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """For all P = sum of M x N places: source and target piece, and the number of each's token."""
    ends = np.cumsum(_places(corpus, rows))
    total = int(ends[-1]) if len(ends) else 0
    sources, targets, by_source, by_target = (np.empty(total, np.int64) for _ in range(4))
    start = seen_source = seen_target = 0
    for row, end in zip(rows, ends.tolist(), strict=True):
        source = _pieces(corpus.source_ids, corpus.source_offsets, row)
        target = _pieces(corpus.target_ids, corpus.target_offsets, row)
        m, n = len(source), len(target)
        sources[start:end] = np.repeat(source, n)
        targets[start:end] = np.tile(target, m)
        by_source[start:end] = np.repeat(np.arange(seen_source, seen_source + m), n)
        by_target[start:end] = np.tile(np.arange(seen_target, seen_target + n), m)
        start, seen_source, seen_target = end, seen_source + m, seen_target + n
    return sources, targets, by_source, by_target


def _pieces(ids: npt.NDArray[np.int32], offsets: Ints, row: int) -> Ints:
    """A sentence's pieces and EOS, which stands in for the words that align to nothing."""
    return np.append(ids[offsets[row] : offsets[row + 1]].astype(np.int64), EOS)


def _expected_counts(
    pair: Ints, token: Ints, given: Ints, iterations: int, vocab_size: int
) -> Floats:
    """Expected alignments [U] of each pair of pieces under p(token's piece | given piece).

    ``pair`` [P] numbers the pair of pieces at each place, ``token`` [P] the token that is to be
    explained there, ``given`` [U] is the piece that explains.
    """
    probability: Floats = np.ones(len(given))
    count: Floats = probability
    for _ in range(iterations):
        share = probability[pair]
        share /= np.bincount(token, share)[token]
        count = np.bincount(pair, share, minlength=len(given)).astype(np.float64)
        probability = count / np.bincount(given, count, minlength=vocab_size)[given]
    return count
