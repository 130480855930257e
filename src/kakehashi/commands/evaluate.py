"""`kakehashi evaluate`: how good a model, or a file of translations, is on a test set."""

from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kakehashi.commands import searching as given
from kakehashi.commands.progress import progress
from kakehashi.commands.streams import output_stream, write_text
from kakehashi.commands.systems import (
    Key,
    System,
    TestSet,
    file_system,
    language_of,
    model_system,
)
from kakehashi.commands.verdict import Verdict

if TYPE_CHECKING:
    from kakehashi.evaluation.metrics import Metric
    from kakehashi.evaluation.scores import Evaluation
    from kakehashi.inference.options import Options


class Format(StrEnum):
    """How the verdict is written."""

    text = "text"
    json = "json"


class MetricName(StrEnum):
    """What to score by."""

    bleu = "bleu"
    chrf = "chrf"
    ter = "ter"


class Tokenizer(StrEnum):
    """SacreBLEU's tokenizers that need no network."""

    none = "none"
    v13a = "13a"
    intl = "intl"
    zh = "zh"
    char = "char"
    ja_mecab = "ja-mecab"
    ko_mecab = "ko-mecab"


def evaluate(
    reference: Annotated[Path, typer.Option(help="The true translations, raw text.")],
    model: Annotated[
        Path | None, typer.Argument(metavar="MODEL", help="A model or run folder.")
    ] = None,
    source: Annotated[
        Path | None, typer.Option(help="What a model is to translate, line by line.")
    ] = None,
    hypothesis: Annotated[
        Path | None, typer.Option(help="Score these translations instead of a model's.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(help="Compare with another model's folder or file of translations."),
    ] = None,
    target_language: Annotated[
        str | None, typer.Option(help="Code of the language of --hypothesis: en, zh, ja, ...")
    ] = None,
    metric: Annotated[
        list[MetricName] | None,
        typer.Option(help="Only this one; give it again for another. TER is slow on long lines."),
    ] = None,
    tokenize: Annotated[
        Tokenizer | None,
        typer.Option(help="How BLEU finds words, if not as usual for the target language."),
    ] = None,
    lowercase: Annotated[
        bool, typer.Option("--lowercase", help="Take A for a in BLEU and chrF, as TER always does.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write MODEL's translations here.")
    ] = None,
    per_sentence: Annotated[
        Path | None, typer.Option(help="Write JSON lines here: each sentence and its scores.")
    ] = None,
    beam: given.Beam = None,
    patience: given.Patience = None,
    length_penalty: given.LengthPenalty = None,
    coverage_penalty: given.CoveragePenalty = None,
    mbr: given.RiskSamples = None,
    seed: given.Seed = None,
    others: given.Together = None,
    batch_size: given.BatchSize = None,
    threads: given.Threads = None,
    form: Annotated[
        Format, typer.Option("--format", help="text: for people. json: one object, for programs.")
    ] = Format.text,
    device: given.Device = "cpu",
    engine: given.Engine = given.EngineName.torch,
) -> None:
    """Score translations: BLEU, chrF and TER with signatures and 95 % intervals.

    What is scored is MODEL's translation of --source, or the text in --hypothesis; against
    --reference, line by line.
    """
    if (model is None) == (hypothesis is None):
        raise typer.BadParameter("give either MODEL or --hypothesis")
    if model is None and output is not None:
        raise typer.BadParameter("--output is for the translations of MODEL")
    keys: list[Key] = [(path,) for path in (model, hypothesis, against) if path is not None]
    if model is not None:
        keys[0] = (model, *(others or ()))
    models = [k for k in keys if model in k[:1] or (k == (against,) and k[0].expanduser().is_dir())]
    models = list(dict.fromkeys(models))
    search: dict[str, Any] = {
        "beam": beam,
        "patience": patience,
        "length_penalty": length_penalty,
        "coverage_penalty": coverage_penalty,
        "mbr": mbr,
        "seed": seed,
        "batch_size": batch_size,
    }
    wanted = list(dict.fromkeys(metric or MetricName))
    settings = {**search, "with": others if model is None else None}
    _check_words(models, source, target_language, settings, wanted, tokenize)
    options = given.search_options(**search)
    test = TestSet.read(source, reference)
    tokenised = tokenize is Tokenizer.none
    found = {k: file_system(k[0], test, tokenised=tokenised) for k in keys if k not in models}
    for key in models:
        found[key] = model_system(
            key, test, options, given.load_translator(key, device, threads, engine)
        )
    systems = [found[key] for key in keys]
    language = language_of(systems, target_language)
    metrics, notes = _metrics(wanted, tokenize, language, lowercase)
    warnings = [*notes, *test.warnings(), *(w for system in systems for w in system.warnings)]
    for warning in dict.fromkeys(warnings):
        typer.echo(f"warning: {warning}", err=True)

    with nullcontext() if per_sentence is None else output_stream(per_sentence) as sentences:
        for system in systems:
            if system.translator is not None and not system.hypotheses:
                _translate(system, test, output if system is systems[0] else None, options)
        evaluation = _score(systems, test, metrics)
        verdict = Verdict(systems, evaluation, test, language, list(dict.fromkeys(warnings)))
        if sentences is not None:
            write_text(sentences, verdict.sentences())
    typer.echo(verdict.json() if form is Format.json else verdict.text())


def _check_words(
    models: list[Key],
    source: Path | None,
    target_language: str | None,
    search: dict[str, Any],
    wanted: list[MetricName],
    tokenize: Tokenizer | None,
) -> None:
    """Refuse words that do not go together."""
    if models and source is None:
        raise typer.BadParameter("a model needs --source, the text to translate")
    if models and target_language is not None:
        raise typer.BadParameter("--target-language is for --hypothesis; a model knows its own")
    said = [name.replace("_", "-") for name, value in search.items() if value is not None]
    if said and (not models or "with" in said):
        raise typer.BadParameter(f"--{said[-1]} is for a model, and there is none")
    if not models and target_language is None and "bleu" in wanted and tokenize is None:
        raise typer.BadParameter(
            "--hypothesis needs --target-language: it decides how BLEU finds words"
        )


def _metrics(
    wanted: list[MetricName], tokenize: Tokenizer | None, language: str | None, lowercase: bool
) -> tuple[list["Metric"], tuple[str, ...]]:
    from kakehashi.evaluation.metrics import Metric
    from kakehashi.evaluation.tokenizers import bleu_tokenizer, check_tokenizer

    tokenizer, notes = bleu_tokenizer(language or "")
    if tokenize is not None:
        check_tokenizer(tokenize)
        tokenizer, notes = str(tokenize), ()
    if "bleu" not in wanted:
        notes = ()
    return [Metric(name, tokenizer, lowercase=lowercase) for name in wanted], notes


def _translate(system: System, test: TestSet, output: Path | None, options: "Options") -> None:
    assert system.translator is not None
    assert test.sources is not None
    with (
        nullcontext() if output is None else output_stream(output) as stream,
        progress(f"translating with {system.name}", "lines", len(test.sources)) as report,
    ):
        for result in system.translator.stream(test.sources, options):
            for warning in result.warnings:
                report.note(warning)
            system.hypotheses.append(result.text)
            report.advance()
        if stream is not None:
            write_text(stream, system.hypotheses)


def _score(systems: list[System], test: TestSet, metrics: list["Metric"]) -> "Evaluation":
    from kakehashi.evaluation.scores import evaluate as score

    lines = len(test.references) * len(systems) * len(metrics)
    with progress("scoring", "lines", lines) as report:
        hypotheses = [system.hypotheses for system in systems]
        return score(hypotheses, test.references, metrics, advance=report.advance)
