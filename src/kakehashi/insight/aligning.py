"""Which of a model's attentions aligns words best, against alignments that people made.

Every layer, head (and the mean of all) and shift is measured on one half of the gold, the odd lines
of it; what is best there is measured again on the other half, the even ones, which had no part in
choosing it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kakehashi.data.reading import is_blank
from kakehashi.errors import ConfigError, EvaluationError
from kakehashi.evaluation.alignment import AlignmentScore, alignment_score
from kakehashi.evaluation.links import Gold, Links, Symmetrisation, symmetrise
from kakehashi.inference.alignment import piece_alignment, shifted, word_alignment
from kakehashi.inference.batches import length_batches
from kakehashi.inference.line_words import line_words, piece_words
from kakehashi.inference.torch_engine import TorchEngine
from kakehashi.inference.translator import Translator
from kakehashi.models.alignment import AlignmentChoice

TextPairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Measured:
    """One way to read alignments off a model, and how well it does."""

    choice: AlignmentChoice
    score: AlignmentScore


def every_alignment(translator: Translator, pairs: TextPairs) -> dict[AlignmentChoice, list[Links]]:
    """The links of words of each pair, by each layer, head (and the mean of all) and shift.

    Raises:
        ConfigError: for another engine, which keeps its weights to itself, and several models.
    """
    engine, tokenizer = translator.engine, translator.tokenizer
    if not isinstance(engine, TorchEngine):
        raise ConfigError(f"the {engine.name} engine does not show how it attends; torch does")
    if engine.together:
        raise ConfigError("several models have no layers and heads in common: probe one at a time")
    rows = tokenizer.encode_batch([source for source, _ in pairs])
    targets = tokenizer.encode_batch([target for _, target in pairs])
    words = [[_words(translator, text) for text in pair] for pair in pairs]
    lengths = [max(len(r), len(t)) + 1 for r, t in zip(rows, targets, strict=True)]
    found: dict[AlignmentChoice, list[Links]] = {}
    for batch in length_batches(lengths, translator.config.decoding.batch_size):
        some, given = [rows[at] for at in batch], [targets[at] for at in batch]
        for at, layers in zip(batch, engine.cross(some, given), strict=True):
            blank = any(is_blank(side) for side in pairs[at])
            for choice, steps in _ways(layers):
                links = found.setdefault(choice, [frozenset()] * len(pairs))
                if not blank:
                    pieces = piece_alignment(shifted(steps, choice.shift))
                    links[at] = frozenset(word_alignment(pieces, *words[at]))
    return found


def _words(translator: Translator, text: str) -> list[tuple[int, ...]]:
    tokenizer = translator.tokenizer
    pieces = tokenizer.pieces(tokenizer.encode(text))
    return piece_words(pieces, tokenizer.encode_spans(text), line_words(text))


def _ways(
    layers: Sequence[np.ndarray],
) -> Iterator[tuple[AlignmentChoice, np.ndarray]]:
    for layer, weights in enumerate(layers, 1):
        heads: list[tuple[int | None, np.ndarray]] = [(None, weights.mean(axis=0))]
        if len(weights) > 1:
            heads += enumerate(weights, 1)
        for head, steps in heads:
            for shift in (0, 1):
                yield AlignmentChoice(layer, head, shift), steps


@dataclass(frozen=True)
class Probed:
    """What is best on one half of the gold, and how it does on the other."""

    table: list[Measured]
    """On the half where it is chosen, the best first."""
    held_out: AlignmentScore
    """Of the best there, on the other half."""
    usual: AlignmentScore
    """On the other half, of what the model was read by so far."""
    everywhere: AlignmentScore
    """Of the best, on all of the gold."""
    links: list[Links]
    """Of the best, for each pair."""

    @property
    def choice(self) -> AlignmentChoice:
        """The best on the half where it is chosen."""
        return self.table[0].choice


@dataclass(frozen=True)
class Joined:
    """Two directions as one, the way to do it chosen like a head: on one half of the gold."""

    table: list[tuple[Symmetrisation, AlignmentScore]]
    """On that half, the best first."""
    held_out: AlignmentScore
    everywhere: AlignmentScore


def probe(translator: Translator, pairs: TextPairs, gold: Sequence[Gold]) -> Probed:
    """Find the best layer, head and shift.

    Args:
        translator: the model, on the torch engine.
        pairs: a line and its translation.
        gold: of the same pairs, the line's word first.

    Raises:
        ConfigError: for another engine, and for several models as one.
        EvaluationError: for unequal counts, fewer than two pairs, and a half without a sure link.
    """
    here, there = _halves(pairs, gold)
    found = every_alignment(translator, pairs)
    table = sorted(
        (Measured(way, alignment_score(links[here], gold[here])) for way, links in found.items()),
        key=lambda each: each.score.aer,
    )
    assert isinstance(translator.engine, TorchEngine)
    so_far = translator.engine.model.alignment
    if so_far not in found:  # the one head of a model is the mean of its heads
        so_far = replace(so_far, head=None)
    usual, best = found[so_far], found[table[0].choice]
    return Probed(
        table,
        held_out=alignment_score(best[there], gold[there]),
        usual=alignment_score(usual[there], gold[there]),
        everywhere=alignment_score(best, gold),
        links=best,
    )


def probe_together(
    forward: Sequence[Links], backward: Sequence[Links], gold: Sequence[Gold]
) -> Joined:
    """Find the best way to make one alignment of two directions.

    Args:
        forward: of each pair, from the model that reads the source.
        backward: from the one that reads the target; its links are (target, source).
        gold: of the same pairs.

    Raises:
        EvaluationError: as ``probe``.
    """
    here, there = _halves(forward, gold)
    turned_round = [frozenset((i, j) for j, i in links) for links in backward]
    found = {
        how: [symmetrise(*both, how) for both in zip(forward, turned_round, strict=True)]
        for how in Symmetrisation
    }
    table = sorted(
        ((how, alignment_score(links[here], gold[here])) for how, links in found.items()),
        key=lambda each: each[1].aer,
    )
    best = found[table[0][0]]
    return Joined(table, alignment_score(best[there], gold[there]), alignment_score(best, gold))


def _halves(pairs: Sequence[object], gold: Sequence[Gold]) -> tuple[slice, slice]:
    if len(pairs) != len(gold):
        raise EvaluationError(
            f"{len(pairs):,} sentence pairs and gold alignments of {len(gold):,}: they must be "
            "the same, line by line"
        )
    if len(gold) < 2:
        raise EvaluationError(
            f"gold alignments of {len(gold)} sentence pair: it takes two or more, to choose on a "
            "half of them and to measure on the other"
        )
    return slice(0, None, 2), slice(1, None, 2)
