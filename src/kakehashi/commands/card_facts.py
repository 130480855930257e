"""What the model card tells, from what a run has recorded."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from kakehashi.decoding.config import DecodingConfig
from kakehashi.evaluation.scores import Score, Scores
from kakehashi.inference.card import CardFacts, code_span, plain
from kakehashi.insight.report.labels import frequency_label, length_label

HANDLING = ("normalisation", "symbols", "subword sampling")
"""Rows about the tokenizer."""
_FOLDERS = re.compile(r"""(?<![^=\[,:{ '"])/(?:[^/,\]}'"=]+/)+""")
"""Of a path from the top of the machine, which are nobody's business where a model is published."""


def card_facts(summary: Mapping[str, Any], analysis: Mapping[str, Any] | None) -> CardFacts:
    """The facts of a run's summary.json, and of its analysis.json where it had a test split.

    Raises:
        KeyError: for a summary that lacks something.
    """
    corpus, test, training = summary["corpus"], summary["test"], dict(summary["made"])
    handling = {k: training.pop(k) for k in list(training) if k in HANDLING}
    return CardFacts(
        source_language=summary["source_language"],
        target_language=summary["target_language"],
        model=summary["model"],
        vocab_size=summary["vocab_size"],
        parameters=summary["parameters"],
        corpus=corpus["name"],
        licence=corpus["licence"],
        attribution=corpus["attribution"],
        train_pairs=corpus["training_pairs"],
        valid_pairs=corpus["validation_pairs"],
        test_pairs=corpus["test_pairs"],
        max_length=summary["max_length"],
        decoding=DecodingConfig(**test["decoding"]),
        scores=_scores(test["scores"]),
        training={
            **handling,
            "tokenizer": f"sha256 {summary['tokenizer_sha256']}",
            "command": code_span(_FOLDERS.sub("", summary["reproduce"])),
            **{name: plain(said) for name, said in training.items()},
            "made with": made_with(summary),
        },
        samples=[(s["source"], s["translation"], s["reference"]) for s in summary["samples"]],
        version=summary["versions"]["kakehashi"],
        apart=test["apart"],
        measured=[] if analysis is None else list(_measured(analysis)),
        provenance=corpus["provenance"],
        sha256=corpus["sha256"],
        pairs_read=corpus["pairs_read"]["train"],
        ledger=[(t["split"], t["reason"], t["action"], t["pairs"]) for t in corpus["ledger"]],
    )


def made_with(summary: Mapping[str, Any]) -> str:
    """Versions and machine, in words."""
    versions, machine, code = summary["versions"], summary["machine"], summary["code"]
    shown = ", ".join(f"{name} {versions[name]}" for name in ("kakehashi", "python", "torch"))
    if code is not None:
        shown += f", commit {code['commit'][:12]}{' with changes' if code['changed'] else ''}"
    on = ", ".join(machine["gpus"]) or f"{machine['cores']} cores, {machine['threads']} threads"
    return f"{shown}; {machine['platform']}, {on}"


def _scores(plain: Mapping[str, Any] | None) -> Scores | None:
    if plain is None:
        return None
    known = {field.name for field in fields(Score)}
    bleu, chrf = (
        Score(**{k: v for k, v in plain[name].items() if k in known}) for name in ("bleu", "chrf")
    )
    return Scores(bleu, chrf, tuple(plain["notes"]))


def _measured(analysis: Mapping[str, Any]) -> Iterator[str]:
    total = analysis["sentences"]
    yield f"{analysis['exact']:,} of {total:,} translations are the reference to the letter."
    found = [f"{f['name']} {f['translations']:,}" for f in analysis["flaws"]]
    yield f"Of {total:,} translations, by kind of flaw: {', '.join(found)}."
    groups = [
        f"{length_label(g)} words {g['bleu']:.1f} ({g['sentences']:,} sentences)"
        for g in analysis["lengths"]
    ]
    yield f"BLEU by length of the source: {', '.join(groups)}."
    recalls = [
        f"{frequency_label(g)} {100 * g['right'] / g['wanted']:.0f} % of {g['wanted']:,}"
        for g in analysis["frequencies"]
        if g["wanted"]
    ]
    if recalls:
        yield (
            "Words of the references that the translations have, by how often training has shown "
            f"them: {', '.join(recalls)}."
        )
