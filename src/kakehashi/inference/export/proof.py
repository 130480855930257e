"""Does an exported model still say the same? Both translate the same lines, and are compared.

Three questions, in this order:

1. **Greedy search**, which is nothing but the model: the same piece at every step of every line. A
   line may differ only at a tie, where both models find both pieces equally probable within
   ``TIE``; such lines are counted.
2. **Scores**: each of the translations of either side, read by both models, has the same
   ``log p / length ** length_penalty`` within ``SAME``.
3. **The model's own search**, a beam as a rule: the same text on every line. A line may differ only
   at a tie, where both models give both texts the same score within ``TIE``; such lines are
   counted.

With weights of 8 bits these cannot be asked. Where there are references BLEU decides: it is at most
``BLEU_ROOM`` from the original's. Without references nobody can say how good a translation is; then
the pieces of the original's translations may lose at most ``LOSS_ROOM`` of log probability in the
mean (a sound model loses half of that, on sense and on nonsense), and BLEU against the original's
translations is told.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.decoding.hypothesis import Hypothesis
from kakehashi.errors import ExportError
from kakehashi.evaluation.scores import Score, corpus_scores
from kakehashi.inference.batches import length_batches
from kakehashi.inference.engine import Engine, Followed, Row
from kakehashi.inference.export.check_set import CheckSet
from kakehashi.inference.translation import one_line

SAME = 1e-4
TIE = 1e-5
BLEU_ROOM = 0.3
LOSS_ROOM = 0.1


@dataclass(frozen=True)
class Agreement:
    """What the comparison of two exact models came to."""

    lines: int
    greedy_identical: int
    greedy_ties: int
    """Lines that part at two pieces that both models find equally probable."""
    identical: int
    """Lines with the same text by the model's own search."""
    ties: int
    """Lines with two texts to which both models give the same score."""
    score_difference: float
    """The largest of all, of one translation read by both."""


@dataclass(frozen=True)
class Likeness:
    """What the comparison with a model of 8-bit weights came to."""

    lines: int
    identical: int
    loss: float
    """How much log probability a piece of the original's translations loses, in the mean."""
    bleu: Score
    """Of the exported model."""
    original: Score | None
    """Of the original; None where its translations were the references."""


def translations(engine: Engine, rows: Sequence[Row], config: DecodingConfig) -> list[Hypothesis]:
    """The best translation of each sentence, decoded in batches of like length."""
    found: list[Hypothesis | None] = [None] * len(rows)
    for batch in length_batches([len(row) + 1 for row in rows], config.batch_size):
        results = engine.search([rows[i] for i in batch], config=config)
        for i, hypotheses in zip(batch, results, strict=True):
            found[i] = hypotheses[0]
    return [hypothesis for hypothesis in found if hypothesis is not None]


def prove_exact(
    original: Engine,
    exported: Engine,
    rows: Sequence[Row],
    decoding: DecodingConfig,
    numbers: Sequence[int] | None = None,
) -> Agreement:
    """Ask the three questions; see the module.

    Args:
        original: the model that was exported.
        exported: what was made of it.
        rows: lines to translate with both, none of them empty.
        decoding: the model's own search.
        numbers: those of the lines in the check set, for errors; None: counted from 1.

    Raises:
        ExportError: with the first line on which the models differ, and by how much.
    """
    numbers = numbers or range(1, len(rows) + 1)
    greedy = replace(decoding, beam=1)
    ours, theirs = (translations(engine, rows, greedy) for engine in (original, exported))
    parted = [i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a.ids != b.ids]
    for i in parted:
        gap = max(_gap(engine, rows[i], ours[i], theirs[i]) for engine in (original, exported))
        if not gap <= TIE:
            raise ExportError(
                f"the exported model is not the same: in greedy search line {numbers[i]} of the "
                f"check set parts at two pieces whose log probabilities differ by {gap:.1e} (at "
                f"most {TIE:.0e} would be a tie)"
            )
    largest = 0.0
    if decoding.beam > 1:
        best = [translations(engine, rows, decoding) for engine in (original, exported)]
    else:
        best = [ours, theirs]
    for side in (ours, *best):
        largest = max(largest, _compare_scores(original, exported, rows, side, decoding, numbers))
    ties = 0
    if decoding.beam > 1:
        ties = _count_ties(original, exported, rows, best, decoding, numbers)
    differing = sum(a.ids != b.ids for a, b in zip(*best, strict=True))
    return Agreement(
        lines=len(rows),
        greedy_identical=len(rows) - len(parted),
        greedy_ties=len(parted),
        identical=len(rows) - differing,
        ties=ties,
        score_difference=largest,
    )


def _gap(engine: Engine, row: Row, ours: Hypothesis, theirs: Hypothesis) -> float:
    """How much less probable than ours the first differing piece of theirs is."""
    common = 0
    while ours.ids[common : common + 1] == theirs.ids[common : common + 1] != ():
        common += 1
    paths = [h.ids[: common + 1] for h in (ours, theirs)]
    first, second = engine.follow([row, row], paths)
    # Where one of them has ended, what stands at that place is the probability of EOS.
    return abs(first.log_probabilities[common] - second.log_probabilities[common])


def _compare_scores(
    original: Engine,
    exported: Engine,
    rows: Sequence[Row],
    side: Sequence[Hypothesis],
    decoding: DecodingConfig,
    numbers: Sequence[int],
) -> float:
    largest = 0.0
    both = _read(original, exported, rows, side, decoding)
    for number, said, pair in zip(numbers, side, both, strict=True):
        scores = [_score(read, said, decoding) for read in pair]
        difference = abs(scores[0] - scores[1])
        if not difference <= SAME:
            raise ExportError(
                f"the exported model is not the same: it gives a translation of line {number} of "
                f"the check set the score {scores[1]:.6f}, the original {scores[0]:.6f} (they may "
                f"differ by {SAME:.0e})"
            )
        largest = max(largest, difference)
    return largest


def _count_ties(
    original: Engine,
    exported: Engine,
    rows: Sequence[Row],
    best: Sequence[Sequence[Hypothesis]],
    decoding: DecodingConfig,
    numbers: Sequence[int],
) -> int:
    """How many lines have two texts, all of them of the same score."""
    parted = [i for i, pair in enumerate(zip(*best, strict=True)) if pair[0].ids != pair[1].ids]
    for i in parted:
        pair = [side[i] for side in best]
        for engine in (original, exported):
            read = engine.follow([rows[i]] * 2, [h.ids for h in pair])
            scores = [_score(one, h, decoding) for one, h in zip(read, pair, strict=True)]
            if not abs(scores[0] - scores[1]) <= TIE:
                raise ExportError(
                    f"the exported model is not the same: line {numbers[i]} of the check set "
                    f"becomes another text, of score {scores[1]:.6f}, and the original's has "
                    f"{scores[0]:.6f} (at most {TIE:.0e} apart would be a tie)"
                )
    return len(parted)


def _score(read: Followed, said: Hypothesis, decoding: DecodingConfig) -> float:
    """What ranks a translation, by one model; EOS counts where it has ended."""
    steps = len(said.ids) + said.finished
    length: float = steps**decoding.length_penalty
    return fsum(read.log_probabilities[:steps]) / length


def _read(
    original: Engine,
    exported: Engine,
    rows: Sequence[Row],
    side: Sequence[Hypothesis],
    decoding: DecodingConfig,
) -> list[tuple[Followed, Followed]]:
    """Each translation as both models read it."""
    found: dict[int, tuple[Followed, Followed]] = {}
    lengths = [max(len(row), len(h.ids)) + 1 for row, h in zip(rows, side, strict=True)]
    for batch in length_batches(lengths, decoding.batch_size):
        chosen = [rows[i] for i in batch], [side[i].ids for i in batch]
        pairs = zip(original.follow(*chosen), exported.follow(*chosen), strict=True)
        found |= zip(batch, pairs, strict=True)
    return [found[i] for i in range(len(rows))]


def prove_alike(
    original: Engine,
    exported: Engine,
    rows: Sequence[Row],
    decoding: DecodingConfig,
    tokenizer: Tokenizer,
    check: CheckSet,
    target_language: str,
) -> Likeness:
    """Compare by BLEU; see the module.

    Raises:
        ExportError: when BLEU is too far from the original's, with both figures.
    """
    found = [translations(engine, rows, decoding) for engine in (original, exported)]
    ours, theirs = ([one_line(tokenizer.decode(h.ids)) for h in side] for side in found)
    before, loss = None, _loss(original, exported, rows, found[0], decoding)
    if check.reference is None:
        after = corpus_scores(theirs, ours, target_language).bleu
        if not loss <= LOSS_ROOM:
            raise ExportError(
                "the model with 8-bit weights is another one: a piece of the original's "
                f"translations loses {loss:.3f} of log probability in the mean, and it may be "
                f"{LOSS_ROOM:g}; give --check-source and --check-reference to let BLEU decide"
            )
    else:
        before = corpus_scores(ours, check.reference, target_language).bleu
        after = corpus_scores(theirs, check.reference, target_language).bleu
        if abs(after.value - before.value) > BLEU_ROOM:
            raise ExportError(
                f"the model with 8-bit weights is another one: BLEU {after.value:.2f}, the "
                f"original {before.value:.2f}, and they may differ by {BLEU_ROOM:g} "
                f"({after.signature})"
            )
    same = sum(a == b for a, b in zip(ours, theirs, strict=True))
    return Likeness(len(rows), same, loss, after, before)


def _loss(
    original: Engine,
    exported: Engine,
    rows: Sequence[Row],
    side: Sequence[Hypothesis],
    decoding: DecodingConfig,
) -> float:
    lost, pieces = 0.0, 0
    for ours, theirs in _read(original, exported, rows, side, decoding):
        lost += fsum(ours.log_probabilities) - fsum(theirs.log_probabilities)
        pieces += len(ours.log_probabilities)
    return lost / pieces
