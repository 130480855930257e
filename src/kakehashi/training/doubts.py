"""What the validations of a run say against its figures."""

import math
from collections.abc import Sequence

from kakehashi.training.callbacks import Point


def doubts(points: Sequence[Point]) -> list[str]:
    """Sentences for the summary; none where BLEU rose and every nll is a number."""
    found, times = [], f"all {len(points)} validations" if len(points) > 1 else "the validation"
    best = max(points, key=lambda point: point.rank)
    if best.bleu == 0:
        found.append(
            f"BLEU was 0 in {times}: no translation shares four words in a row with its reference, "
            f"so the weights with the lowest nll were kept (update {best.update:,}); longer "
            "training is the first thing to try"
        )
    elif len(points) > 1 and best is points[0]:
        found.append(
            f"BLEU never rose after the first validation (update {best.update:,}, {best.bleu:.2f}; "
            f"the last was {points[-1].bleu:.2f}): a lower learning rate is the first thing to try"
        )
    if strange := [point.update for point in points if not math.isfinite(point.nll)]:
        found.append(
            f"the nll of {len(strange)} of {len(points)} validations is not a finite number, first "
            f"after update {strange[0]:,}: the model is sure of translations that are wrong, or "
            "broken"
        )
    return found
