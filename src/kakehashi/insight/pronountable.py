"""Who is meant: heads and rules, row by row."""

from collections.abc import Sequence

import numpy as np

from kakehashi.insight.pronoun import Looks, Rate, Verdict, halves, judge, rules, stays
from kakehashi.insight.table import Record, Value
from kakehashi.insight.winomt import Question

FIGURES = {
    "share": "share",
    "first": "right_first",
    "second": "right_second",
    "balanced": "balanced",
    "stereotyped": "stereotyped",
    "anti": "anti_stereotyped",
    "twins": "twins",
}
ALL, OTHER = "all", "other half"


def pronoun_records(
    questions: Sequence[Question], looks: Looks, exchanged: Sequence[Question], swapped: Looks
) -> list[dict[str, Value]]:
    """A row for each head, mean of heads and rule; then rows of the half that none was chosen on.

    Args:
        questions: all of them.
        looks: at the sentences as they are.
        exchanged: those of them whose names can be exchanged, ``Question.exchanged``.
        swapped: looks at these.
    """
    chosen = looks.right > looks.wrong
    by_mean = looks.right / looks.right_pieces > looks.wrong / looks.wrong_pieces
    again = {question.line: at for at, question in enumerate(exchanged)}
    same = [at for at, question in enumerate(questions) if question.line in again]
    kept = stays(chosen[:, same], swapped.right > swapped.wrong) if same else None
    rows = []
    for number, (layer, head) in enumerate(looks.labels):
        row = _row(ALL, f"layer {layer}, {_head(head)}", judge(chosen[number], questions))
        row["share_by_mean"] = 100 * float(by_mean[number].mean())
        row["stays"] = None if kept is None else float(kept[number])
        rows.append(row)
    chosen_by = rules(questions)
    rows += [_row(ALL, name, judge(choice, questions)) for name, choice in chosen_by.items()]
    return rows + _other_half(questions, looks, chosen, chosen_by)


def _other_half(
    questions: Sequence[Question],
    looks: Looks,
    chosen: np.ndarray,
    chosen_by: dict[str, np.ndarray],
) -> list[dict[str, Value]]:
    """The heads that are best on one half, judged on the other, beside the rules."""
    half = halves(questions)
    if half.all():
        return []
    ours = [question for question, mine in zip(questions, half, strict=True) if mine]
    theirs = [question for question, mine in zip(questions, half, strict=True) if not mine]
    heads = [n for n, (_, head) in enumerate(looks.labels) if head is not None]
    verdicts = {n: judge(chosen[n, half], ours) for n in heads}
    rows = []
    for name in ("share", "balanced"):
        best = max(heads, key=lambda n: _value(getattr(verdicts[n], name)))
        layer, head = looks.labels[best]
        label = f"best by {name}: layer {layer}, {_head(head)}"
        rows.append(_row(OTHER, label, judge(chosen[best, ~half], theirs)))
    return rows + [
        _row(OTHER, name, judge(choice[~half], theirs)) for name, choice in chosen_by.items()
    ]


def _head(head: int | None) -> str:
    return "mean" if head is None else f"head {head}"


def _value(rate: Rate | None) -> float:
    return -1.0 if rate is None else rate.value


def _row(half: str, label: str, verdict: Verdict) -> dict[str, Value]:
    row: dict[str, Value] = {
        "sentences": half,
        "who chooses": label,
        "count": 0 if verdict.share is None else verdict.share.questions,
    }
    for name, attribute in FIGURES.items():
        rate = getattr(verdict, attribute)
        row[name] = None if rate is None else rate.value
        row[f"{name}_low"] = None if rate is None else rate.low
        row[f"{name}_high"] = None if rate is None else rate.high
    return row | {"share_by_mean": None, "stays": None}


def for_people(rows: Sequence[Record]) -> list[dict[str, Value]]:
    """The same with bounds in brackets behind their figures."""
    return [_for_people(row) for row in rows]


def _for_people(row: Record) -> dict[str, Value]:
    shown: dict[str, Value] = {n: row[n] for n in ("sentences", "who chooses", "count")}
    for name in FIGURES:
        value, low, high = (row[name + bound] for bound in ("", "_low", "_high"))
        shown[name] = None if value is None else f"{value:.1f} ({low:.1f} to {high:.1f})"
    for name, column in (("share_by_mean", "by mean"), ("stays", "stays")):
        shown[column] = None if row[name] is None else f"{row[name]:.1f}"
    return shown


def counts(questions: Sequence[Question], looks: Looks) -> dict[str, Value]:
    """What the figures are of."""
    pieces = np.concatenate([looks.right_pieces, looks.wrong_pieces])
    stereotypes = [question.stereotyped for question in questions]
    return {
        "sentences": len(questions),
        "beginnings": len({question.frame for question in questions}),
        "stereotyped": stereotypes.count(True),
        "anti-stereotyped": stereotypes.count(False),
        "neither": stereotypes.count(None),
        "right person named first": sum(question.right_first for question in questions),
        "pieces of a name, mean": float(pieces.mean()),
        "pieces of a name, most": int(pieces.max()),
        "names of one piece, percent": 100 * float((pieces == 1).mean()),
    }
