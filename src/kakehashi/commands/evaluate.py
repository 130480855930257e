"""`kakehashi evaluate`: how good a model, or a file of translations, is on a test set."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from kakehashi.evaluation.metrics import Scores
    from kakehashi.inference.translator import Translator


def evaluate(
    reference: Annotated[Path, typer.Option(help="The true translations, raw text.")],
    model: Annotated[
        Path | None, typer.Argument(metavar="MODEL", help="A model or run folder.")
    ] = None,
    source: Annotated[
        Path | None, typer.Option(help="What MODEL is to translate, line by line.")
    ] = None,
    hypothesis: Annotated[
        Path | None, typer.Option(help="Score these translations instead of a model's.")
    ] = None,
    target_language: Annotated[
        str | None, typer.Option(help="Code of the language of --hypothesis: en, zh, ja, ...")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write MODEL's translations here.")
    ] = None,
    beam: Annotated[int | None, typer.Option(min=1, help="Hypotheses kept; 1 is greedy.")] = None,
    length_penalty: Annotated[
        float | None, typer.Option(min=0, help="Larger prefers longer translations; 0 shorter.")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Sentences at a time.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for programs.")] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto: a GPU if there is one.")] = "cpu",
) -> None:
    """Score translations: BLEU and chrF with signatures and 95 % intervals.

    What is scored is MODEL's translation of --source, or the text in --hypothesis; against
    --reference, line by line.
    """
    if hypothesis is not None:
        if model is not None or source is not None or output is not None:
            raise typer.BadParameter("--hypothesis takes no MODEL, --source or --output")
        if target_language is None:
            raise typer.BadParameter(
                "--hypothesis needs --target-language: it decides how BLEU finds words"
            )
        result = _score_file(hypothesis, reference, target_language)
    else:
        if model is None or source is None:
            raise typer.BadParameter("give MODEL and --source, or --hypothesis")
        if target_language is not None:
            raise typer.BadParameter("--target-language is for --hypothesis; MODEL knows its own")
        search = {"beam": beam, "length_penalty": length_penalty, "batch_size": batch_size}
        result = _score_model(model, source, reference, output, device, search)
    _report(*result, as_json)


def _score_file(
    hypothesis: Path, reference: Path, language: str
) -> tuple["Scores", dict[str, Any]]:
    from kakehashi.data.reading import read_lines
    from kakehashi.evaluation.metrics import corpus_scores

    names = (str(hypothesis), str(reference))
    hypotheses, references = read_lines(hypothesis), read_lines(reference)
    scores = corpus_scores(hypotheses, references, language, names=names)
    facts = {"hypothesis": names[0], "reference": names[1], "target_language": language}
    return scores, facts | {"lines": len(references)}


def _score_model(
    model: Path,
    source: Path,
    reference: Path,
    output: Path | None,
    device: str,
    search: dict[str, Any],
) -> tuple["Scores", dict[str, Any]]:
    from kakehashi.data.reading import read_lines
    from kakehashi.evaluation.metrics import check_counts, corpus_scores
    from kakehashi.inference.translator import Translator

    names = (str(source), str(reference))
    sources, references = read_lines(source), read_lines(reference)
    check_counts(sources, references, names)
    translator = Translator.load(model, device)
    hypotheses = _translate(translator, sources, output, search)
    scores = corpus_scores(hypotheses, references, translator.config.target_language, names=names)
    default = translator.config.decoding
    facts: dict[str, Any] = {"model": str(model), "source": names[0], "reference": names[1]}
    facts["target_language"] = translator.config.target_language
    facts["lines"] = len(references)
    for setting in ("beam", "length_penalty"):
        given = search[setting]
        facts[setting] = getattr(default, setting) if given is None else given
    return scores, facts


def _translate(
    translator: "Translator", sources: list[str], output: Path | None, search: dict[str, Any]
) -> list[str]:
    from contextlib import nullcontext

    from kakehashi.commands.progress import progress
    from kakehashi.commands.streams import output_stream, write_text

    texts = []
    with (
        nullcontext() if output is None else output_stream(output) as stream,
        progress("translating", "lines", len(sources)) as report,
    ):
        for result in translator.stream(sources, **search):
            for warning in result.warnings:
                report.note(warning)
            texts.append(result.text)
            report.advance()
        if stream is not None:
            write_text(stream, texts)
    return texts


def _report(scores: "Scores", facts: dict[str, Any], as_json: bool) -> None:
    for note in scores.notes:
        typer.echo(f"note: {note}", err=True)
    if as_json:
        values = facts | {"bleu": asdict(scores.bleu), "chrf": asdict(scores.chrf)}
        typer.echo(json.dumps(values | {"notes": list(scores.notes)}, ensure_ascii=False))
    else:
        typer.echo(f"{scores.bleu}\n{scores.chrf}")
