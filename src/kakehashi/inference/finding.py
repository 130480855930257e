"""What an engine finds for rows of pieces, as the options of a call ask."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.decoding.hypothesis import Hypothesis
from kakehashi.decoding.mbr import by_expected_utility
from kakehashi.decoding.rules import Rules
from kakehashi.inference.batches import length_batches
from kakehashi.inference.engine import Engine, Followed, Row
from kakehashi.inference.options import MinimumRisk, Options
from kakehashi.inference.translation import one_line


def found_for(
    engine: Engine,
    tokenizer: Tokenizer,
    chosen: Sequence[tuple[Row, Rules]],
    config: DecodingConfig,
    options: Options,
) -> list[list[Hypothesis]]:
    """The n-best list of each row, within its rules."""
    rules = [rules for _, rules in chosen]
    search = partial(
        engine.search,
        [row for row, _ in chosen],
        config=config,
        rules=None if all(each.empty for each in rules) else rules,
        allow_unknown=options.copy_unknown,
    )
    method = options.method
    if not isinstance(method, MinimumRisk):
        return search(method=method, n_best=options.n_best)
    drawn = search(method=method.sampling, n_best=method.samples)
    return [_least_risk(tokenizer, samples)[: options.n_best] for samples in drawn]


def _least_risk(tokenizer: Tokenizer, drawn: Sequence[Hypothesis]) -> list[Hypothesis]:
    """The different samples of a sentence by expected chrF, which is then their score."""
    texts = [one_line(tokenizer.decode(hypothesis.ids)) for hypothesis in drawn]
    # With it comes sacreBLEU, which one line by a beam should not wait for.
    from kakehashi.evaluation.chrf import pairwise_chrf

    ranked = by_expected_utility(texts, pairwise_chrf)
    return [replace(drawn[each.first], score=each.utility) for each in ranked]


def read_again(
    engine: Engine, rows: Sequence[Row], found: Sequence[Sequence[Hypothesis]], size: int
) -> list[list[Followed]]:
    """The hypotheses of each row read once more: what a search throws away of them.

    In batches of their own, of at most ``size``, or memory would grow with the n-best list.
    """
    pairs = [
        (row, hypothesis.ids) for row, some in zip(rows, found, strict=True) for hypothesis in some
    ]
    followed: dict[int, Followed] = {}
    for batch in length_batches([max(len(s), len(t)) + 1 for s, t in pairs], size):
        sources, targets = zip(*(pairs[index] for index in batch), strict=True)
        read = engine.follow(sources, targets, attending=True)
        followed |= zip(batch, read, strict=True)
    in_order = iter(followed[index] for index in range(len(pairs)))
    return [[next(in_order) for _ in some] for some in found]
