"""What each head attends to, by where its weight lies.

A *look* is a set of places, such as the token before. For each head the share of its weight that
lies there is told beside the share that attending to all places alike would put there, on the same
rows of the same sentences: punctuation that is a tenth of the text gets a tenth for nothing. Rows
are the places of text (BOS and EOS ask too, but are no text); a look is counted over those rows
that have such a place.

Shapes: H heads, N rows, M columns.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple
from unicodedata import category

import numpy as np
import numpy.typing as npt

from kakehashi.data.tokenizer import SPACE
from kakehashi.decoding.config import DecodingConfig
from kakehashi.inference.torch_engine import TorchEngine
from kakehashi.insight.lexical import Links

EXCESS = 0.2
"""Of a head's weight: how much more must lie somewhere than would for nothing, for a name."""
TIMES = 2.0
"""And how many times as much."""
Places = npt.NDArray[np.bool_]
Weights = npt.NDArray[np.float64]


class Look(StrEnum):
    """Where a head may look from a place."""

    previous = "previous"
    """At the token before it."""
    same = "same"
    """At itself."""
    next = "next"
    """At the token after it (the encoder's heads only)."""
    first = "first"
    """At the first column: the first token of the source, BOS in the decoder's own past. Counted
    where that is neither the same nor the previous token."""
    end = "end"
    """At the source's EOS."""
    punctuation = "punctuation"
    """At other tokens all of whose characters are punctuation (Unicode's categories P)."""
    aligned = "aligned"
    """Cross-attention: at what the token that this step writes translates."""
    aligned_input = "aligned-input"
    """Cross-attention: at what the token that this step reads translates."""


@dataclass(frozen=True)
class Share:
    """Of a head's weight, from 0 to 1."""

    weight: float
    uniform: float
    """What the same places would get if the head attended to all alike."""
    rows: int
    """How many the mean is of."""


@dataclass(frozen=True)
class HeadStudy:
    """What one head does."""

    attention: str
    """encoder, decoder or cross."""
    layer: int
    """From 1."""
    head: int
    """From 1."""
    shares: dict[Look, Share]
    entropy: float
    """Mean over rows, in bits."""
    normalised_entropy: float
    """Mean over the rows with a choice of entropy / log2(columns): 1 is all places alike."""
    largest: float
    """Mean over rows of the greatest weight."""

    @property
    def kind(self) -> Look | None:
        """The look whose share exceeds that of all places alike by 0.2 and is twice as great.

        Of several the one with the greatest excess; None where there is none.
        """
        found = {
            look: share.weight - share.uniform
            for look, share in self.shares.items()
            if share.weight >= max(share.uniform + EXCESS, TIMES * share.uniform)
        }
        return max(found, key=lambda look: found[look]) if found else None


class Pieces(NamedTuple):
    """A sentence pair: piece numbers without BOS and EOS, and as they are written."""

    source: Sequence[int]
    target: Sequence[int]
    source_text: Sequence[str]
    target_text: Sequence[str]
    links: Links | None
    """None where nothing is known of alignments."""


@dataclass
class _Sums:
    """Of the heads of one layer, over the rows seen so far."""

    weight: dict[Look, Weights] = field(default_factory=dict)
    uniform: dict[Look, float] = field(default_factory=dict)
    counted: dict[Look, int] = field(default_factory=dict)
    entropy: Weights | float = 0.0
    normalised: Weights | float = 0.0
    largest: Weights | float = 0.0
    rows: int = 0
    choices: int = 0


def followed_pairs(
    engine: TorchEngine,
    rows: Iterable[Sequence[int]],
    targets: Iterable[Sequence[int]] | None,
    config: DecodingConfig,
) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """Each line's pieces, and those of what the model is to follow: a given text, or its own."""
    if targets is not None:
        yield from zip(rows, targets, strict=True)
        return
    for row in rows:
        yield row, engine.search([row], config=config)[0][0].ids


def study_heads(
    engine: TorchEngine,
    sentences: Iterable[Pieces],
    advance: Callable[[int], None] = lambda lines: None,
) -> list[HeadStudy]:
    """Read every attention of every sentence, and say of each head where its weight lies.

    Args:
        engine: with one model.
        sentences: some, each followed through the model.
        advance: told how many sentences more are read.
    """
    sums: dict[tuple[str, int], _Sums] = {}
    for sentence in sentences:
        maps = engine.maps(sentence.source, sentence.target)
        found = {"encoder": maps.encoder, "decoder": maps.decoder, "cross": maps.cross}
        for attention, layers in found.items():
            if layers:
                looks, rows, columns = _LOOKS[attention](sentence)
                for layer, weights in enumerate(layers):
                    values = weights[0].double().cpu().numpy()[:, rows]
                    _add(sums.setdefault((attention, layer), _Sums()), values, looks, columns)
        advance(1)
    return [
        study
        for (attention, layer), sum_ in sorted(sums.items(), key=lambda item: _order(item[0]))
        for study in _studies(attention, layer, sum_)
    ]


def _order(place: tuple[str, int]) -> tuple[int, int]:
    return ("encoder", "decoder", "cross").index(place[0]), place[1]


def entropies(weights: npt.ArrayLike) -> Weights:
    """Entropy in bits of distributions along the last axis; 0 log 0 is 0."""
    values = np.asarray(weights, dtype=np.float64)
    logs = np.log2(values, out=np.zeros_like(values), where=values > 0)
    return np.asarray(np.abs(-(values * logs).sum(-1)))


def _add(sums: _Sums, values: Weights, looks: dict[Look, Places], columns: Weights) -> None:
    """One sentence's rows [H N M] of a layer; ``columns`` [N] is how many each may attend to."""
    entropy = entropies(values)
    choice = columns > 1
    sums.entropy += entropy.sum(1)
    sums.normalised += (entropy[:, choice] / np.log2(columns[choice])).sum(1)
    sums.largest += values.max(2, initial=0.0).sum(1)
    sums.rows += len(columns)
    sums.choices += int(choice.sum())
    for look, places in looks.items():
        has = places.any(axis=1)
        weight = np.where(places, values, 0.0).sum((1, 2))
        sums.weight[look] = sums.weight.get(look, np.zeros(len(values))) + weight
        uniform = float((places.sum(1) / columns).sum())
        sums.uniform[look] = sums.uniform.get(look, 0.0) + uniform
        sums.counted[look] = sums.counted.get(look, 0) + int(has.sum())


def _studies(attention: str, layer: int, sums: _Sums) -> Iterator[HeadStudy]:
    heads = len(np.atleast_1d(sums.entropy))
    rows, choices = max(1, sums.rows), max(1, sums.choices)
    for head in range(heads):
        shares = {
            look: Share(float(sums.weight[look][head] / n), sums.uniform[look] / n, n)
            for look, n in sums.counted.items()
            if n
        }
        entropy, normalised, largest = (
            float(np.atleast_1d(value)[head])
            for value in (sums.entropy, sums.normalised, sums.largest)
        )
        yield HeadStudy(
            attention,
            layer + 1,
            head + 1,
            shares,
            entropy / rows,
            normalised / choices,
            largest / rows,
        )


def _encoder(sentence: Pieces) -> tuple[dict[Look, Places], slice, Weights]:
    n = len(sentence.source)
    at = np.arange(n)[:, None]
    column = np.arange(n + 1)[None]
    looks = {
        Look.previous: column == at - 1,
        Look.same: column == at,
        Look.next: (column == at + 1) & (column < n),
        Look.first: (column == 0) & (at > 1),
        Look.end: np.broadcast_to(column == n, (n, n + 1)),
        Look.punctuation: _punctuation((*sentence.source_text, "</s>"), n) & (column != at),
    }
    return looks, slice(0, n), np.full(n, n + 1.0)


def _decoder(sentence: Pieces) -> tuple[dict[Look, Places], slice, Weights]:
    n = len(sentence.target)
    at = np.arange(1, n + 1)[:, None]
    column = np.arange(n + 1)[None]
    looks = {
        Look.previous: (column == at - 1) & (column > 0),
        Look.same: column == at,
        Look.first: (column == 0) & (at > 1),
        Look.punctuation: _punctuation(("<s>", *sentence.target_text), n) & (column < at),
    }
    return looks, slice(1, n + 1), np.arange(2.0, n + 2.0)


def _cross(sentence: Pieces) -> tuple[dict[Look, Places], slice, Weights]:
    m, n = len(sentence.source), len(sentence.target)
    column = np.arange(m + 1)[None]
    looks = {
        Look.first: np.broadcast_to((column == 0) & (m > 0), (n, m + 1)),
        Look.end: np.broadcast_to(column == m, (n, m + 1)),
        Look.punctuation: _punctuation((*sentence.source_text, "</s>"), n),
    }
    if sentence.links is not None:
        aligned = np.zeros((n + 1, m + 1), dtype=bool)
        for i, j in sentence.links:
            aligned[j, i] = True
        looks[Look.aligned] = aligned[:n]
        looks[Look.aligned_input] = np.roll(aligned, 1, axis=0)[:n]
    return looks, slice(0, n), np.full(n, m + 1.0)


_LOOKS = {"encoder": _encoder, "decoder": _decoder, "cross": _cross}


def _punctuation(pieces: Sequence[str], rows: int) -> Places:
    """Pieces of punctuation alone, whatever the row [N M]."""
    marks = [{category(c)[0] for c in piece.strip(SPACE)} == {"P"} for piece in pieces]
    return np.broadcast_to(np.array(marks), (rows, len(pieces)))
