"""How the model came to be: curves, data, time, configuration, environment, commands."""

import shlex
from html import escape
from typing import Any

from kakehashi.inference.card import public_name
from kakehashi.insight.report.charts import Line, chart
from kakehashi.insight.report.html import Cell, Row, code, facts, section, table
from kakehashi.insight.report.labels import clock, figure
from kakehashi.insight.report.recorded import Recorded

_FAULTS = {
    "skipped": "updates skipped, because loss or gradient was no number, or memory too small",
    "overflows": "updates not made while 16-mixed precision looked for its factor",
    "largest_part": "padded tokens at most that went through at once, for want of memory",
    "full_precision_from": "update after which mixed precision was given up",
}


def curves(run: Recorded) -> str:
    """What was measured while the model learned."""
    measured, points = run.curves, run.summary["training"]["points"]
    nll = [(p["update"], p["nll"]) for p in points]
    bleu = [(p["update"], p["bleu"]) for p in points]
    figures = [
        chart(
            "Negative log likelihood of a target piece, in nats",
            [Line("training", measured.get("train/nll", [])), Line("validation", finite(nll))],
            "c-nll",
            3,
        ),
        chart("Validation BLEU", [Line("BLEU", finite(bleu))], "c-bleu"),
        chart("Training loss", [Line("loss", measured.get("train/loss", []))], "c-loss", 3),
        chart(
            "Learning rate", [Line("rate", measured.get("train/learning_rate", []))], "c-rate", 5
        ),
        chart(
            "Tokens a second",
            [Line("tokens/s", measured.get("train/tokens_per_second", []))],
            "c-speed",
            0,
        ),
        chart(
            "Norm of the gradient",
            [Line("norm", measured.get("train/gradient_norm", []))],
            "c-norm",
        ),
    ]
    rows = [
        [f"{p['update']:,}", clock(p["seconds"]), figure(p["nll"], 3), figure(p["bleu"])]
        for p in points
    ]
    validations = table(
        "Validations", ["update", "time", "negative log likelihood", "BLEU"], rows, "t-points"
    )
    return section(
        "curves",
        "Curves",
        f"<div class='charts'>{''.join(figures)}</div>",
        ""
        if measured
        else "<p class='note'>Training itself left no curves: logger.csv was off.</p>",
        f"<details><summary>All {len(rows):,} validations as numbers</summary>{validations}"
        "</details>",
    )


def finite(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Without what is no number."""
    return [(update, value) for update, value in points if abs(value) < float("inf")]


def data(run: Recorded) -> str:
    """Where the text came from, and what became of each pair."""
    corpus = run.summary["corpus"]
    given = [
        ("corpus", escape(corpus["name"])),
        ("licence", escape(corpus["licence"])),
        *([("attribution", escape(corpus["attribution"]))] if corpus["attribution"] else []),
        (
            "pairs",
            f"{corpus['training_pairs']:,} for training, {corpus['validation_pairs']:,} for "
            f"validation, {corpus['test_pairs']:,} for the test",
        ),
        *(
            (name, escape(said))
            for name, said in run.summary["made"].items()
            if name in ("stream", "corpora")
        ),
    ]
    origins: list[Row] = [
        [public_name(n), Cell(said, code=True)] for n, said in corpus["provenance"].items()
    ]
    origins += [
        [f"sentences of {name}", Cell(f"sha256 {hashed}", code=True)]
        for name, hashed in corpus["sha256"].items()
    ]
    ledger = corpus["ledger"]
    rows = [
        [t["reason"], t["split"], t["action"], f"{t['pairs']:,}", _first(t["first"])]
        for t in ledger
    ]
    return section(
        "data",
        "Data",
        facts(given),
        table("What tells whether another copy is the same", ["data", "hash"], origins, "t-origins")
        if origins
        else "",
        "<h3>Ledger</h3>",
        f"<p>{escape(corpus['account'])}</p>",
        table(
            "Pairs that were left out, changed or remarked on",
            ["reason", "split", "what was done", "pairs", "first lines"],
            rows,
            "t-ledger",
        )
        if rows
        else "<p>No pair was left out, changed or remarked on.</p>",
        "<p>Each of them stands with its line in <a href='ledger.jsonl'>"
        f"{escape(corpus['ledger_files'])}</a>, in the folder of the run.</p>"
        if rows
        else "",
    )


def _first(places: list[list[Any]]) -> str:
    return ", ".join(f"{line:,}" for _, line in places)


def training(run: Recorded) -> str:
    """Length, weights, times, and what went wrong."""
    summary = run.summary
    trained, model = summary["training"], dict(summary["model"])
    model["score"] = model["score"]["name"]
    sizes = ", ".join(f"{name} {value}" for name, value in model.items() if name != "name")
    rows = [
        ("model", f"{escape(model['name'])}, {summary['parameters']:,} parameters"),
        ("settings", escape(sizes)),
        ("vocabulary", f"{summary['vocab_size']:,} pieces for both languages"),
        *(
            (name, escape(said))
            for name, said in summary["made"].items()
            if name not in ("stream", "corpora", "faults")
        ),
        ("tokens", f"{trained['tokens']:,} read and written in training, by one process"),
    ]
    if trained["resumed"]:
        rows.append(
            ("gone on with", "from update " + ", ".join(f"{u:,}" for u in trained["resumed"]))
        )
    times = [[name, clock(seconds)] for name, seconds in summary["seconds"].items()]
    times += [
        ["validations, in training", clock(trained["validation_seconds"])],
        ["checkpoints, in training", clock(trained["saving_seconds"])],
    ]
    warnings = "".join(f"<li>{escape(text)}</li>" for text in trained["warnings"])
    faults = [
        [said, f"{trained['faults'][name]:,}"]
        for name, said in _FAULTS.items()
        if trained["faults"][name]
    ]
    return section(
        "training",
        "Training",
        f"<div class='warning'><h3>Warnings</h3><ul>{warnings}</ul></div>" if warnings else "",
        facts(rows),
        table("Time", ["part", "time"], times, "t-times"),
        table("Faults (faults.jsonl)", ["what", "number"], faults, "t-faults")
        if faults
        else "<p>No update was skipped, and none went wrong.</p>",
    )


def configuration(run: Recorded) -> str:
    """The words that were typed, and all settings."""
    summary = run.summary
    parts = [code(summary["command"], "The command as it was typed")]
    if run.config:
        parts.append(
            "<details><summary>All settings (config.yaml)</summary>"
            f"{code(run.config, 'All settings')}</details>"
        )
    if run.overrides.strip() not in ("", "[]"):
        parts.append(
            "<details><summary>What differs from the defaults (overrides.yaml)</summary>"
            f"{code(run.overrides, 'Words that differ from the defaults')}</details>"
        )
    return section("configuration", "Configuration", *parts)


def environment(run: Recorded) -> str:
    """Versions and machine."""
    versions, machine, at = (run.summary[name] for name in ("versions", "machine", "code"))
    rows = [[name, number] for name, number in versions.items()]
    given = [
        ("finished", f"<time>{escape(run.summary['finished'])}</time>"),
        ("platform", escape(machine["platform"])),
        ("processor", escape(machine["processor"])),
        ("cores", f"{machine['cores']}, of which torch used {machine['threads']} threads"),
        *([("GPUs", escape(", ".join(machine["gpus"])))] if machine["gpus"] else []),
    ]
    if at is not None:
        changed = ", with changes that were not committed" if at["changed"] else ""
        given.append(("commit", f"<code>{escape(at['commit'])}</code>{changed}"))
    return section(
        "environment",
        "Environment",
        facts(given),
        table("Versions", ["package", "version"], rows, "t-versions"),
    )


def commands(run: Recorded) -> str:
    """How to get the same model, score it, and use it."""
    summary = run.summary
    parts = [
        "<p>The same run again, update for update:</p>",
        code(summary["reproduce"], "Command that repeats the run"),
    ]
    if run.analysis is not None:
        texts = "--source RUN/test_source.txt --reference RUN/test_reference.txt"
        beam = summary["test"]["decoding"]["beam"]
        parts += [
            "<p>The same scores again, where RUN is the folder of this page:</p>",
            code(f"kakehashi evaluate RUN {texts} --beam {beam}", "Command that scores"),
        ]
    line = run.summary["samples"][0]["source"] if run.summary["samples"] else "..."
    parts += [
        "<p>A translation:</p>",
        code(
            f"printf '%s\\n' {shlex.quote(line)} | kakehashi translate RUN",
            "Command that translates",
        ),
        "<p>This page and the model card again, byte for byte:</p>",
        code("kakehashi report RUN", "Command that writes the report"),
    ]
    return section("commands", "Commands", *parts)
