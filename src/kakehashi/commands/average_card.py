"""The model card of a mean of checkpoints."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kakehashi.commands.card_facts import HANDLING, card_facts
from kakehashi.evaluation.scores import Score
from kakehashi.inference.card import model_card


def averaged_card(
    summary: dict[str, Any],
    checkpoints: Sequence[tuple[str, int]],
    scored_on: str,
    scores: Sequence[tuple[str, Sequence[Score]]],
) -> str:
    """The card: what was averaged, how good each part was, and the mean.

    Args:
        summary: the run's summary.json.
        checkpoints: file name and update of everything that went into the mean.
        scored_on: which text, how many pairs, which search.
        scores: of each checkpoint, and last of the mean.
    """
    parts = ", ".join(f"`{name}` (update {update:,})" for name, update in checkpoints)
    of_run = card_facts(summary, None)
    kept = ("tokenizer", "command", "seed", "made with", *HANDLING)
    facts = replace(
        of_run,
        scores=None,
        samples=(),
        training={name: said for name, said in of_run.training.items() if name in kept}
        | {"weights": f"mean of {len(checkpoints)} checkpoints of that run: {parts}"},
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
