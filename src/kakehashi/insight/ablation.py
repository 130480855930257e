"""What a head is worth: how many BLEU points a model loses when it has to do without it.

A head is removed by taking its context for 0: in a copy of the model the columns of the matrices
that would take the context are set to 0, which is the same (see ``Head.inputs``). Everything else
stays, biases too. (Another way is to let the head attend to all places alike; then its mean value
goes on into the model, and what is measured is the choice of places alone.)
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from kakehashi.errors import ConfigError
from kakehashi.evaluation.bootstrap import interval, p_value, resample
from kakehashi.evaluation.metrics import Metric
from kakehashi.evaluation.scores import N_BOOTSTRAP, check_counts
from kakehashi.evaluation.tokenizers import bleu_tokenizer
from kakehashi.inference.options import Options
from kakehashi.inference.torch_engine import TorchEngine
from kakehashi.inference.translator import Translator
from kakehashi.models.interface import Head, TranslationModel

GREEDY = Options(beam=1)


@dataclass(frozen=True)
class Cost:
    """How a model translates without some heads."""

    bleu: float
    loss: float
    """BLEU of the whole model minus that."""
    low: float
    """Bounds of the 95 % interval of the loss, by paired bootstrap over sentences."""
    high: float
    p_value: float
    """sacreBLEU's, see ``bootstrap.p_value``; of this comparison alone, however many others there
    are. Of heads that do nothing one in nine has one below 0.05: where the interval holds 0, no
    loss is shown."""


@dataclass(frozen=True)
class Ablation:
    """The whole model, and what each removal costs it."""

    bleu: float
    signature: str
    costs: tuple[Cost, ...]


def without(model: TranslationModel[Any], heads: Sequence[Head]) -> TranslationModel[Any]:
    """A copy of the model in which these of its heads contribute nothing."""
    copied = copy.deepcopy(model)
    removed = {(head.attention, head.layer, head.number) for head in heads}
    with torch.no_grad():
        for head in copied.heads():
            if (head.attention, head.layer, head.number) in removed:
                for linear, columns in head.inputs:
                    linear.weight[:, columns] = 0.0
    return copied


def torch_engine(translator: Translator) -> TorchEngine:
    """The engine that shows how its one model attends.

    Raises:
        ConfigError: for another engine, and for an ensemble.
    """
    engine = translator.engine
    if not isinstance(engine, TorchEngine):
        raise ConfigError(f"the {engine.name} engine does not show how it attends; torch does")
    if not engine.model.heads():
        raise ConfigError("an ensemble has no heads of its own: give one model")
    return engine


def ablation(
    translator: Translator,
    lines: Sequence[str],
    references: Sequence[str],
    removals: Sequence[Sequence[Head]],
    *,
    options: Options = GREEDY,
    n_bootstrap: int = N_BOOTSTRAP,
    advance: Callable[[int], None] = lambda lines: None,
) -> Ablation:
    """Translate everything with the whole model, then without each group of heads.

    Args:
        translator: a model on the torch engine.
        lines: source text.
        references: a human translation of each line.
        removals: groups of heads; those of one are removed together.
        options: how to translate; greedy search is fast, and shows the same order of heads.
        n_bootstrap: resampled test sets behind intervals and p-values, the same for all groups.
        advance: told how many lines more are translated.

    Raises:
        ConfigError: for another engine, and for an ensemble.
        EvaluationError: for unequal counts, or no line at all.
    """
    model = torch_engine(translator).model
    check_counts(lines, references, ("the source", "the reference"))
    metric = Metric("bleu", bleu_tokenizer(translator.config.target_language)[0])
    tables = []
    groups: list[Sequence[Head]] = [(), *removals]
    for heads in groups:
        changed = without(model, heads) if heads else model
        system = Translator(TorchEngine(changed), translator.tokenizer, translator.config)
        hypotheses = []
        for translation in system.stream(lines, options):
            hypotheses.append(translation.text)
            advance(1)
        tables.append([metric.statistics(hypotheses, references, lambda _: None)])
    samples = resample([metric], tables, n_bootstrap)[:, 0]
    scores = np.array([metric.score(table[0].sum(0)) for table in tables])
    costs = []
    for score, sample in zip(scores[1:], samples[1:], strict=True):
        loss = float(scores[0] - score)
        low, high = interval(samples[0] - sample)
        costs.append(Cost(float(score), loss, low, high, p_value(samples[0], sample, loss)))
    return Ablation(float(scores[0]), metric.signature(n_bootstrap), tuple(costs))
