"""What a run says at its end: summary.json for programs, summary.txt for people."""

import json
import shlex
import shutil
import sys
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kakehashi.commands.environment import commit, machine, versions
from kakehashi.commands.repeat import command, reproduce
from kakehashi.commands.streamed import described, epochs, held_out, ledger_files, trained_on
from kakehashi.data.reading import write_bytes
from kakehashi.decoding.config import DecodingConfig
from kakehashi.evaluation.scores import Scores
from kakehashi.models.config import model_settings
from kakehashi.training.fitted import Fitted
from kakehashi.training.progress import clock

if TYPE_CHECKING:
    from kakehashi.commands.run import Run


@dataclass(frozen=True)
class Sample:
    """One test sentence."""

    source: str
    translation: str
    reference: str


@dataclass(frozen=True)
class TestResult:
    """The test split, translated."""

    __test__ = False  # not a test of pytest's

    scores: Scores | None
    """None without a test split."""
    samples: list[Sample]
    translations: list[str]
    """Of all sentences."""
    sentences_per_second: float
    decoding: DecodingConfig

    def as_dict(self) -> dict[str, Any]:
        """Plain values, without sentences."""
        plain = asdict(self)
        del plain["samples"], plain["translations"]
        return plain


def _text_handling(run: "Run") -> dict[str, str]:
    """What the tokenizer does to a text."""
    config, rows = run.config.tokenizer, {"normalisation": str(run.normalisation)}
    if config.symbols:
        rows["symbols"] = " ".join(f"`{symbol}`" for symbol in config.symbols)
    if config.sampling.kind is not None:
        rows["subword sampling"] = f"`{config.sampling.setting}`, in training only"
    return rows


def n_parameters(run: "Run") -> int:
    """Trained numbers, tied ones once."""
    return sum(p.numel() for p in run.model.parameters())


def chosen(fitted: Fitted) -> str:
    """Which weights were kept, and why."""
    best = max(fitted.points, key=lambda point: point.rank)
    said = f"best checkpoint (update {best.update:,}): validation BLEU {best.bleu:.2f}"
    if fitted.average is None:
        return said
    mean = f"averaged weights: validation BLEU {fitted.average.bleu:.2f}"
    if fitted.chosen == "average":
        return f"{mean}; {said}"
    return f"{said}; {mean}"


def summary_facts(run: "Run", fitted: Fitted, test: TestResult, max_length: int) -> dict[str, Any]:
    """All of summary.json, as it reads back: the report and the card are made of nothing else.

    Whatever depends on the time, the machine or the versions in use is looked up here, once.
    """
    corpus = run.corpus
    facts = {
        "name": run.config.name,
        "finished": datetime.now().astimezone().isoformat(timespec="seconds"),
        "command": command(run.words),
        "reproduce": reproduce(run.exact_words, run.config.trainer, fitted.total_updates),
        "seed": run.config.seed,
        "source_language": corpus.source_language,
        "target_language": corpus.target_language,
        "corpus": {
            "name": corpus.name,
            "licence": corpus.licence,
            "attribution": corpus.attribution,
            "provenance": corpus.provenance,
            "sha256": {
                name: pairs.digest()
                for name in ("train", "valid", "test")
                if len(pairs := getattr(corpus, name))
            },
            **run.data.facts(),
            "account": _account(run),
            "ledger_files": ledger_files(run),
        },
        "vocab_size": run.tokenizer.vocab_size,
        "normalisation": asdict(run.normalisation),
        "tokenizer": asdict(run.config.tokenizer),
        "tokenizer_sha256": run.tokenizer.fingerprint,
        "model": model_settings(run.config.model),
        "parameters": n_parameters(run),
        "max_length": max_length,
        "training": fitted.as_dict(),
        "test": test.as_dict() | {"apart": not run.config.data.test.given},
        "seconds": {name: round(value, 2) for name, value in run.seconds.items()},
        "made": _rows(run, fitted),
        "samples": [asdict(sample) for sample in test.samples],
        "versions": versions(),
        "machine": machine(run.config.trainer.accelerator),
        "code": commit(),
    }
    dumped = json.dumps(facts, ensure_ascii=False)
    # half of a surrogate pair, which a sentence from JSON may hold, is no text in a file
    read_back: dict[str, Any] = json.loads(dumped.encode("utf-8", "replace"))
    return read_back


def write_summary(run: "Run", fitted: Fitted, test: TestResult, facts: dict[str, Any]) -> str:
    """Write summary.json and summary.txt into the run's folder; returns the text."""
    text = _text(run, fitted, test)
    write_bytes(run.folder / "summary.txt", text.encode("utf-8", "replace"))
    dumped = json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
    write_bytes(run.folder / "summary.json", dumped.encode())
    return text


def _rows(run: "Run", fitted: Fitted) -> dict[str, str]:
    """How the model was made, in words."""
    return {
        **_text_handling(run),
        "updates": f"{fitted.updates:,} ({epochs(run, fitted)})",
        "time": f"{clock(fitted.seconds)} with validations",
        "weights": chosen(fitted),
        "seed": str(run.config.seed),
        **({"faults": str(fitted.faults)} if str(fitted.faults) else {}),
        **({"stream": stream} if (stream := described(run)) else {}),
        **({"corpora": "; ".join(mixture)} if (mixture := _mixture(run)) else {}),
    }


def _text(run: "Run", fitted: Fitted, test: TestResult) -> str:
    blocks = [
        _heading(run),
        *(f"Warning: {warning}" for warning in fitted.warnings),
        _scores(run, test),
        _made(run, fitted, test),
        _corpus(run),
        _samples(test),
        _next(run, fitted),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _heading(run: "Run") -> str:
    corpus = run.corpus
    return (
        f"{run.config.name}: {corpus.source_language} to {corpus.target_language}, "
        f"{run.config.model.name} with {n_parameters(run):,} parameters"
    )


def _scores(run: "Run", test: TestResult) -> str:
    if test.scores is None:
        return "No test split, no scores."
    pairs = len(run.corpus.test)
    # a test split that was given is the user's own affair: overlaps were reported, not hidden
    held_out = not run.config.data.test.given
    apart = ", none of whose sentences occurs in the training pairs" if held_out else ""
    lines = [f"Test split: {pairs:,} pairs{apart}."]
    lines += [f"  {score}" for score in (test.scores.bleu, test.scores.chrf)]
    lines += [f"  note: {note}" for note in test.scores.notes]
    return "\n".join(lines)


def _made(run: "Run", fitted: Fitted, test: TestResult) -> str:
    trained = (
        f"{fitted.updates:,} updates, {trained_on(run, fitted)} in {clock(fitted.seconds)} "
        f"({clock(fitted.validation_seconds)} of it validation)"
    )
    rows = [
        ("training", trained),
        ("weights", chosen(fitted)),
        ("time", ", ".join(f"{name} {clock(value)}" for name, value in run.seconds.items())),
    ]
    if str(fitted.faults):
        rows.insert(1, ("faults", str(fitted.faults)))
    rows[1:1] = [("corpus", text) for text in _mixture(run)]
    if stream := described(run):
        rows.insert(1, ("stream", stream))
    if test.scores is not None:
        speed = f"{test.sentences_per_second:,.0f} sentences/s, beam {test.decoding.beam}"
        rows.insert(-1, ("decoding", speed))
    return "\n".join(f"{name:<9} {value}" for name, value in rows)


def _account(run: "Run") -> str:
    """How many pairs were read, and to what use they came."""
    corpus, ledger = run.corpus, run.corpus.ledger
    held = [name for name in ("valid", "test") if name not in corpus.read]
    parts = [f"{run.data.n_training_pairs:,} to train on"]
    parts += held_out(run, held)
    parts += [f"{ledger.left_out('train'):,} left out"]
    return f"Of {corpus.read['train']:,} pairs read: {', '.join(parts)}."


def _corpus(run: "Run") -> str:
    """What became of every pair that was read."""
    ledger = run.corpus.ledger
    lines = [_account(run), *(f"  {total}" for total in ledger.totals())]
    if ledger.totals():
        lines.append(f"Each of them is in {ledger_files(run)}, with its line.")
    return "\n".join(lines)


def _mixture(run: "Run") -> list[str]:
    """How much of each corpus of a mixture an epoch holds."""
    return [
        f"{part['name']}: {part['pairs_an_epoch']:,} of {part['pairs']:,} pairs an epoch, "
        f"{part['share']:.1%} of it"
        for part in run.data.mixture()
    ]


def _samples(test: TestResult) -> str:
    blocks = [
        f"  source      {sample.source}\n"
        f"  translation {sample.translation}\n"
        f"  reference   {sample.reference}"
        for sample in test.samples
    ]
    return "\n\n".join(["Test sentences:", *blocks]) if blocks else ""


def _next(run: "Run", fitted: Fitted) -> str:
    folder = run.folder.absolute()
    shown = _quoted(_short(run.folder.parent / "latest"))
    again = reproduce(run.exact_words, run.config.trainer, fitted.total_updates)
    lines = [
        f"report.html, the model, its card, the curves and heatmap.png are in {folder}",
        "",
        "Next:",
        f"  {_program('kakehashi')} translate {shown} -i FILE",
        f"  {_program('kakehashi')} evaluate {shown} --source FILE --reference FILE",
        f"  {_program('kakehashi')} heatmap {shown} --text TEXT -o attention.png",
        f"  {_program('tensorboard')} --logdir {shown}",
        "",
        "The same run again, update for update:",
        f"  {again.replace('kakehashi', _program('kakehashi'), 1)}",
    ]
    return "\n".join(lines)


def _program(name: str) -> str:
    """How to type a command of this environment: its name, or its path where that is not enough."""
    path = Path(sys.executable).parent / name
    return name if shutil.which(name) or not path.exists() else _quoted(_short(path))


def _short(path: Path) -> Path:
    """From the working directory where possible."""
    path = path.absolute()
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
