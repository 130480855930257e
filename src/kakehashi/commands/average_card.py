"""The model card of a mean of checkpoints."""

from collections.abc import Sequence
from typing import Any

from kakehashi.evaluation.scores import Score
from kakehashi.inference.bundle import Bundle
from kakehashi.inference.card import CardFacts, model_card


def averaged_card(
    bundle: Bundle,
    summary: dict[str, Any],
    checkpoints: Sequence[tuple[str, int]],
    scored_on: str,
    scores: Sequence[tuple[str, Sequence[Score]]],
) -> str:
    """The card: what was averaged, how good each part was, and the mean.

    Args:
        bundle: the run's model, for its settings.
        summary: the run's summary.json.
        checkpoints: file name and update of everything that went into the mean.
        scored_on: which text, how many pairs, which search.
        scores: of each checkpoint, and last of the mean.
    """
    config, corpus = bundle.config, summary["corpus"]
    parts = ", ".join(f"`{name}` (update {update:,})" for name, update in checkpoints)
    facts = CardFacts(
        source_language=config.source_language,
        target_language=config.target_language,
        model=config.model,
        vocab_size=config.vocab_size,
        parameters=summary["parameters"],
        corpus=corpus["name"],
        licence=corpus["licence"],
        attribution=corpus["attribution"],
        train_pairs=corpus["training_pairs"],
        valid_pairs=corpus["validation_pairs"],
        test_pairs=corpus["test_pairs"],
        max_length=config.max_length,
        decoding=config.decoding,
        scores=None,
        training={
            "command": f"`{summary['reproduce']}`",
            "weights": f"mean of {len(checkpoints)} checkpoints of that run: {parts}",
            "seed": str(summary["seed"]),
        },
        pairs_read=corpus["pairs_read"]["train"],
        ledger=[(t["split"], t["reason"], t["action"], t["pairs"]) for t in corpus["ledger"]],
    )
    return model_card(facts, _scores(scored_on, scores))


def _scores(scored_on: str, scores: Sequence[tuple[str, Sequence[Score]]]) -> str:
    _, mean = scores[-1]
    rows = [f"| | {' | '.join(score.name for score in mean)} |", "|---" * (len(mean) + 1) + "|"]
    for name, found in scores:
        cells = (f"{s.value:.2f} ({s.low:.2f} to {s.high:.2f})" for s in found)
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n\n".join(
        [
            f"On {scored_on}; in brackets the 95 % interval. Where that text has chosen what was "
            "averaged, it flatters: `kakehashi evaluate` measures on a test set.",
            "\n".join(rows),
            *(f"{score.name}: `{score.signature}`" for score in mean),
        ]
    )
