"""How good the model is: the parts of the page that look at the translated test split."""

from collections.abc import Sequence
from html import escape
from typing import Any

from kakehashi.insight.report.html import Cell, Row, section, sentence, table
from kakehashi.insight.report.labels import figure, frequency_label, length_label, percent
from kakehashi.insight.report.recorded import Recorded

FEW = 30
"""Sentences below which a score of them means little."""


def scores(run: Recorded) -> str:
    """Every score with its interval, its search and its signature."""
    test, corpus = run.summary["test"], run.summary["corpus"]
    found = test["scores"]
    if found is None:
        points = run.summary["training"]["validated"]
        return section(
            "scores",
            "Scores",
            "<p>The corpus came without a test split, so there are no scores on text that training "
            "has not looked at. On the validation split, which chose the weights: BLEU "
            f"{figure(points['bleu'])}, negative log likelihood {figure(points['nll'], 3)}.</p>",
        )
    rows, signatures = [], []
    for score in found.values():
        if not isinstance(score, dict):
            continue
        low, high = score["low"], score["high"]
        interval = "not computed" if low is None else f"{figure(low)} to {figure(high)}"
        rows.append([score["name"], figure(score["value"]), interval])
        signatures.append([score["name"], Cell(score["signature"], code=True)])
    apart = ", none of whose sentences is in the training text" if test["apart"] else ""
    search = test["decoding"]
    return section(
        "scores",
        "Scores",
        f"<p>On {corpus['test_pairs']:,} test pairs{apart}; beam {search['beam']}, length penalty "
        f"{search['length_penalty']:g}, {figure(test['sentences_per_second'], 0)} sentences a "
        "second.</p>",
        table("Scores of the test split", ["metric", "score", "95 % interval"], rows, "t-scores"),
        table("What each score was computed with", ["metric", "signature"], signatures, "t-signed"),
        *(_note(text) for text in found["notes"]),
    )


def _note(text: str) -> str:
    return f'<p class="note">Note: {escape(text)}.</p>'


def lengths(run: Recorded) -> str:
    """Scores by length of the source."""
    if run.analysis is None:
        return ""
    groups = run.analysis["lengths"]
    rows: list[Row] = [
        [
            f"{length_label(group)}{' *' if group['sentences'] < FEW else ''}",
            f"{group['sentences']:,}",
            Cell(figure(group["bleu"], 1), group["bleu"] / 100),
            Cell(figure(group["chrf"], 1), group["chrf"] / 100),
            figure(group["ratio"]),
        ]
        for group in groups
    ]
    few = any(group["sentences"] < FEW for group in groups)
    head = ["words of the source", "sentences", "BLEU", "chrF", "words written / expected"]
    return section(
        "lengths",
        "By length",
        "<p>Long sentences are harder, and rarer in training. A quotient below 1 in the last "
        "column says that translations are shorter than their references.</p>",
        table("Scores by length of the source sentence", head, rows, "t-lengths"),
        f"<p class='note'>* Fewer than {FEW} sentences: this score may be chance.</p>"
        if few
        else "",
    )


def words(run: Recorded) -> str:
    """What BLEU is made of, and rare words."""
    found = run.analysis
    if found is None:
        return ""
    parts = found["ngrams"]
    pairs = list(zip(parts["matched"], parts["said"], strict=True))
    rows: list[Row] = [
        [str(n), f"{said:,}", f"{matched:,}", _share(matched, said)]
        for n, (matched, said) in enumerate(pairs, 1)
    ]
    groups: list[Row] = [
        [
            frequency_label(g),
            f"{g['wanted']:,}",
            f"{g['said']:,}",
            f"{g['right']:,}",
            _share(g["right"], g["wanted"]),
            percent(g["right"], g["said"]),
            percent(2 * g["right"], g["wanted"] + g["said"]),
        ]
        for g in found["frequencies"]
    ]
    sample = run.summary["corpus"]["stream"] is not None
    text = "a sample of the training text, which was a stream" if sample else "the training text"
    return section(
        "words",
        "Words",
        f"<p>Words are those that BLEU counts (sacreBLEU’s tokenizer {found['tokenizer']}), "
        "punctuation included.</p>",
        table(
            "n-grams of the translations that are in their references",
            ["words in a row", "written", "matched", "precision"],
            rows,
            "t-ngrams",
        ),
        f"<p>Brevity penalty {figure(parts['brevity_penalty'], 3)}: the translations have "
        f"{figure(parts['ratio'], 3)} times the words of the references.</p>",
        table(
            f"Words by how often they stand in the target side of {text}",
            ["seen in training", "expected", "written", "right", "recall", "precision", "F1"],
            groups,
            "t-frequencies",
        ),
        "<p class='note'>A word is right where its sentence’s reference has it, at most as often "
        "as it stands there. A word that training has never shown can still be written, piece by "
        "piece.</p>",
    )


def _share(part: int, whole: int) -> Cell:
    return Cell(percent(part, whole), part / whole if whole else None)


def flaws(run: Recorded) -> str:
    """Counts of what a score does not tell."""
    found = run.analysis
    if found is None:
        return ""
    total = found["sentences"]
    rows: list[Row] = [
        [
            flaw["name"],
            f"{flaw['translations']:,} ({percent(flaw['translations'], total)})",
            "–" if flaw["references"] is None else f"{flaw['references']:,}",
            Cell(flaw["means"], wide=True),
        ]
        for flaw in found["flaws"]
    ]
    examples = [
        f"<li><p class='which'>{flaw['name']}, line {line:,}</p>"
        f"{_texts([('source', source), ('translation', translation)])}</li>"
        for flaw in found["flaws"]
        for line in flaw["lines"]
        for source, translation in [found["examples"][str(line)]]
    ]
    shown = (
        f"<details><summary>The first of each kind ({len(examples)})</summary>"
        f"<ol class='sentences'>{''.join(examples)}</ol></details>"
        if examples
        else ""
    )
    return section(
        "flaws",
        "What goes wrong",
        table(
            f"Flaws among {total:,} translations, and among their references",
            ["kind", "translations", "references", "what counts"],
            rows,
            "t-flaws",
        ),
        "<p class='note'>These are found by rules, which err at times: the third column shows "
        "how often the rule finds the same in what people wrote.</p>",
        shown,
    )


def sentences(run: Recorded) -> str:
    """The worst and the best translations, by chrF."""
    found = run.analysis
    if found is None:
        return ""
    total, exact = found["sentences"], found["exact"]
    return section(
        "sentences",
        "Sentences",
        f"<p>{exact:,} of {total:,} translations ({percent(exact, total)}) are their reference to "
        "the letter. A sentence’s score says how like its one reference it is; a good translation "
        "in other words scores low.</p>",
        f"<h3>Lowest scores</h3>{_judged(found['worst'])}",
        f"<h3>Highest scores</h3>{_judged(found['best'])}",
    )


def _judged(judged: Sequence[dict[str, Any]]) -> str:
    items = "".join(
        f"<li><p class='which'>line {one['line']:,} · chrF {figure(one['chrf'], 1)} · BLEU "
        f"{figure(one['bleu'], 1)}</p>"
        f"{_texts([(n, one[n]) for n in ('source', 'translation', 'reference')])}</li>"
        for one in judged
    )
    return f"<ol class='sentences'>{items}</ol>"


def _texts(texts: Sequence[tuple[str, str]]) -> str:
    items = "".join(f"<div><dt>{name}</dt><dd>{sentence(text)}</dd></div>" for name, text in texts)
    return f"<dl>{items}</dl>"


def attention(run: Recorded) -> str:
    """How the model attends on ten test sentences."""
    if not run.viewer:
        return ""
    return section(
        "attention",
        "Attention",
        "<p>Where the model looks while it reads and writes some of the test sentences. What a "
        "head attends to is no explanation of what the model does: it shows which values were "
        "mixed, not what they hold.</p>",
        run.viewer,
    )
