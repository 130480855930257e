"""What heads do and what they cost, as rows."""

from collections.abc import Sequence

from kakehashi.insight.ablation import Ablation, Cost
from kakehashi.insight.heads import HeadStudy, Look
from kakehashi.insight.table import Record, Value
from kakehashi.models.interface import Head

LOOKS = tuple(Look)
ALL = "all"
"""In place of a head's number: those of its layer together."""


def removals(heads: Sequence[Head]) -> list[list[Head]]:
    """Each head alone, and after the heads of an attention with several all of them together."""
    layers: dict[tuple[str, int], list[Head]] = {}
    for head in heads:
        layers.setdefault((head.attention, head.layer), []).append(head)
    groups = []
    for name in ("encoder", "decoder", "cross"):
        for (attention, _), layer in layers.items():
            if attention == name:
                groups += [[head] for head in layer]
                groups += [layer] if len(layer) > 1 else []
    return groups


def records(
    studies: Sequence[HeadStudy], groups: Sequence[Sequence[Head]], ablation: Ablation | None
) -> list[dict[str, Value]]:
    """A row for each group of heads: shares in percent of the weight, BLEU where it was measured.

    Args:
        studies: of every head.
        groups: see ``removals``.
        ablation: of these groups.
    """
    known = {(s.attention, s.layer, s.head): s for s in studies}
    costs: Sequence[Cost | None] = [None] * len(groups) if ablation is None else ablation.costs
    rows = []
    for group, cost in zip(groups, costs, strict=True):
        head = group[0]
        study = None
        if len(group) == 1:
            study = known.get((head.attention, head.layer + 1, head.number + 1))
        row: dict[str, Value] = {
            "attention": head.attention,
            "layer": head.layer + 1,
            "head": ALL if len(group) > 1 else head.number + 1,
            "kind": study.kind.value if study is not None and study.kind is not None else None,
        }
        for look in LOOKS:
            share = None if study is None else study.shares.get(look)
            row[look.value] = None if share is None else 100 * share.weight
            row[f"{look.value}_uniform"] = None if share is None else 100 * share.uniform
        row |= {
            "entropy": None if study is None else study.entropy,
            "normalised_entropy": None if study is None else study.normalised_entropy,
            "largest": None if study is None else 100 * study.largest,
        }
        if ablation is not None:
            assert cost is not None
            row |= {
                "bleu": cost.bleu,
                "loss": cost.loss,
                "loss_low": cost.low,
                "loss_high": cost.high,
                "p_value": cost.p_value,
            }
        rows.append(row)
    return rows


def for_people(rows: Sequence[Record]) -> list[dict[str, Value]]:
    """The same rows with fewer columns: a share with its baseline behind it, ``62 (11)``."""
    return [_for_people(row) for row in rows]


def _for_people(row: Record) -> dict[str, Value]:
    shown: dict[str, Value] = {name: row[name] for name in ("attention", "layer", "head", "kind")}
    for look in LOOKS:
        share, uniform = row[look.value], row[f"{look.value}_uniform"]
        shown[look.value] = None if share is None else f"{share:.0f} ({uniform:.0f})"
    for name, column, digits in (
        ("entropy", "bits", 2),
        ("normalised_entropy", "of most", 2),
        ("largest", "largest", 0),
    ):
        value = row[name]
        shown[column] = None if value is None else f"{value:.{digits}f}"
    if "loss" in row:
        shown["BLEU lost"] = f"{row['loss']:.2f} ({row['loss_low']:.2f} to {row['loss_high']:.2f})"
        shown["p"] = f"{row['p_value']:.3f}"
    return shown
