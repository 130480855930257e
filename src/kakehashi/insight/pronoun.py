"""Whether the encoder's self-attention at a pronoun shows whom it means.

For each head the weight that the pronoun puts on the name of the right person is compared with that
on the wrong one. Which of the two stands nearer is known without any model, and most of these
pronouns mean the person named last; so a head that only knows places can look as if it knew
meanings. Four figures tell the two apart:

- *balanced*: the mean of the share where the right person is named first and where second. 50 % for
  whatever goes by the place alone.
- *twins*: two sentences that begin alike, with a pronoun of the same gender, of which one means the
  first person and the other the second. How often both are right less how often both are wrong: 0
  for whatever goes by the place alone, and for guessing.
- *stays*: how often the choice stays with the place when the two names are exchanged in the
  sentence: 100 % for places alone, 0 % for words alone.
- what rules without a model make of the same sentences.

Q questions, H heads of all encoder layers, C clusters (sentences that begin alike).
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.errors import ConfigError, DataError
from kakehashi.evaluation.metrics import SEED
from kakehashi.inference.line_words import NONE, piece_words
from kakehashi.inference.torch_engine import TorchEngine
from kakehashi.insight.winomt import Question

Floats = npt.NDArray[np.float64]
N_BOOTSTRAP = 1000
_PRONOUN, _RIGHT, _WRONG = range(3)


@dataclass(frozen=True)
class Rate:
    """A figure in percent, with the bounds of its 95 % interval."""

    value: float
    low: float
    high: float
    """Percentiles of 1000 bootstrap samples of clusters: variations of a sentence go together."""
    questions: int
    """How many it is of."""


@dataclass(frozen=True)
class Verdict:
    """How often a head or a rule picks the right person; None where there is nothing to count."""

    share: Rate | None
    right_first: Rate | None
    """Of the questions whose right person is named first."""
    right_second: Rate | None
    balanced: Rate | None
    stereotyped: Rate | None
    """Of those whose pronoun fits the stereotype of the right person's job."""
    anti_stereotyped: Rate | None
    """Of those whose pronoun goes against it."""
    twins: Rate | None
    """Pairs in which both are right less pairs in which both are wrong."""


@dataclass(frozen=True)
class Looks:
    """What each head at the pronoun puts on the two names."""

    labels: tuple[tuple[int, int | None], ...]
    """Of H rows: layer and head, from 1; after the heads of a layer their mean (None)."""
    right: Floats
    """[H Q], summed over the pieces of the name, mean over the pieces of the pronoun."""
    wrong: Floats
    right_pieces: Floats
    """[Q], pieces of each name."""
    wrong_pieces: Floats


def pronoun_looks(
    engine: TorchEngine,
    tokenizer: Tokenizer,
    questions: Sequence[Question],
    advance: Callable[[int], None] = lambda lines: None,
) -> Looks:
    """Read every sentence, and the weights at its pronoun.

    Raises:
        ConfigError: for a model whose encoder has no self-attention.
        DataError: for a name or pronoun that has no piece of its own.
    """
    if not any(head.attention == "encoder" for head in engine.model.heads()):
        raise ConfigError(
            "this model's encoder has no self-attention (it is recurrent): a pronoun in it looks "
            "at nothing; give a Transformer"
        )
    rows, counts = [], []
    labels: tuple[tuple[int, int | None], ...] = ()
    for question in questions:
        ids = tokenizer.encode(question.text)
        places = _places(question, tokenizer, ids)
        maps = [m[0].double().cpu().numpy() for m in engine.maps(ids, []).encoder]
        weights = np.concatenate([np.concatenate([m, m.mean(0, keepdims=True)]) for m in maps])
        at = weights[:, places[_PRONOUN]].mean(1)
        rows.append((at[:, places[_RIGHT]].sum(1), at[:, places[_WRONG]].sum(1)))
        counts.append((len(places[_RIGHT]), len(places[_WRONG])))
        labels = tuple(
            (layer, head)
            for layer, m in enumerate(maps, 1)
            for head in (*range(1, len(m) + 1), None)
        )
        advance(1)
    found, pieces = np.array(rows), np.array(counts, dtype=np.float64)
    return Looks(labels, found[:, 0].T, found[:, 1].T, pieces[:, 0], pieces[:, 1])


def _places(question: Question, tokenizer: Tokenizer, ids: Sequence[int]) -> list[list[int]]:
    """The pieces of the pronoun, of the right and of the wrong name."""
    regions = [NONE] * len(question.text)
    for number, span in enumerate((question.pronoun, question.right, question.wrong)):
        regions[slice(*span)] = [number] * (span.end - span.start)
    inside = piece_words(tokenizer.pieces(ids), tokenizer.encode_spans(question.text), regions)
    found = [[at for at, held in enumerate(inside) if number in held] for number in range(3)]
    if not all(found):
        raise DataError(f"line {question.line}: a name or the pronoun has no piece in this model")
    return found


def judge(chosen: npt.ArrayLike, questions: Sequence[Question]) -> Verdict:
    """The verdict on choices.

    Args:
        chosen: [Q], 1 where the right person was chosen, 0 where the wrong one, NaN where a rule
            says nothing; that question is then left out.
        questions: of the choices.
    """
    right = np.asarray(chosen, dtype=np.float64)
    clusters = _numbers([q.frame for q in questions])
    first = np.array([q.right_first for q in questions])
    fits = np.array([np.nan if q.stereotyped is None else q.stereotyped for q in questions])
    said = ~np.isnan(right)
    drawn = _draws(int(clusters.max()) + 1)

    def ratio(mask: npt.NDArray[np.bool_]) -> tuple[float, Floats, int]:
        hits = np.bincount(clusters, np.where(mask, np.nan_to_num(right), 0.0))
        counts = np.bincount(clusters, mask.astype(np.float64))
        with np.errstate(invalid="ignore", divide="ignore"):
            return hits.sum() / counts.sum(), (drawn @ hits) / (drawn @ counts), int(mask.sum())

    def rate(mask: npt.NDArray[np.bool_]) -> Rate | None:
        return _rate(*ratio(said & mask))

    one, other = ratio(said & first), ratio(said & ~first)
    balanced = ((one[0] + other[0]) / 2, (one[1] + other[1]) / 2, int(said.sum()))
    pairs = _twins(questions)
    both = np.array([right[i] + right[j] - 1 for i, j in pairs])  # 1, 0 or -1
    known = ~np.isnan(both)
    where = clusters[[i for i, _ in pairs]] if pairs else np.zeros(0, dtype=np.int64)
    counts = np.bincount(where, known.astype(np.float64), minlength=drawn.shape[1])
    sums = np.bincount(where, np.nan_to_num(both), minlength=drawn.shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        twins = sums.sum() / counts.sum(), (drawn @ sums) / (drawn @ counts), int(known.sum())
    everything = np.ones(len(questions), dtype=bool)
    return Verdict(
        rate(everything),
        _rate(*one),
        _rate(*other),
        _rate(*balanced) if one[2] and other[2] else None,
        rate(fits == 1),
        rate(fits == 0),
        _rate(*twins),
    )


def _rate(value: float, samples: Floats, questions: int) -> Rate | None:
    if not questions:
        return None
    low, high = np.nanpercentile(samples, [2.5, 97.5])
    return Rate(100 * float(value), 100 * float(low), 100 * float(high), questions)


def _draws(clusters: int) -> Floats:
    """How often each cluster is in each resampled set, [samples C]."""
    generator = np.random.default_rng(SEED)
    drawn = generator.multinomial(clusters, np.full(clusters, 1 / clusters), size=N_BOOTSTRAP)
    return drawn.astype(np.float64)


def _numbers(names: Sequence[str]) -> npt.NDArray[np.int64]:
    order = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([order[name] for name in names], dtype=np.int64)


def _twins(questions: Sequence[Question]) -> list[tuple[int, int]]:
    """Questions that begin alike with one gender, one meaning the first and one the second."""
    groups: dict[tuple[str, str], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for at, question in enumerate(questions):
        groups[question.frame, question.gender][question.right_first].append(at)
    return [pair for second, first in groups.values() for pair in zip(first, second, strict=False)]


def rules(questions: Sequence[Question]) -> dict[str, Floats]:
    """What can be chosen without a model, [Q] each; NaN where a rule says nothing."""
    given: dict[str, list[bool | None]] = {
        "nearest noun": [q.right_nearest for q in questions],
        "first noun": [q.right_first for q in questions],
        "subject": [q.right_subject for q in questions],
    }
    return {
        name: np.array([np.nan if c is None else float(c) for c in chosen])
        for name, chosen in given.items()
    }


def halves(questions: Sequence[Question]) -> npt.NDArray[np.bool_]:
    """True for one half of the clusters, every other one: to choose a head on, not to judge it."""
    return np.equal(_numbers([q.frame for q in questions]) % 2, 0)


def stays(right: npt.ArrayLike, exchanged: npt.ArrayLike) -> Floats:
    """How often, in percent, a choice stays with the place when the two names are exchanged.

    Args:
        right: [H Q], True where the place of the right person was chosen.
        exchanged: the same after the exchange.
    """
    return np.asarray(100 * (np.asarray(right) == np.asarray(exchanged)).mean(-1))
