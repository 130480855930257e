"""`kakehashi export`: a model in the format of another runtime, with proof that it is the same."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from kakehashi.data.config import DataConfig
    from kakehashi.inference.export.check_set import CheckSet


class Runtime(StrEnum):
    """What the model is to run on."""

    ctranslate2 = "ctranslate2"
    huggingface = "huggingface"


class Quantization(StrEnum):
    """How weights are kept."""

    float32 = "float32"
    int8 = "int8"


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model or run folder.")],
    to: Annotated[
        Runtime, typer.Option(help="ctranslate2: fast on CPUs. huggingface: for transformers.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The folder to make; else it stands in MODEL under --to's name."
        ),
    ] = None,
    quantization: Annotated[
        Quantization,
        typer.Option(help="int8: a quarter of the size, faster, and not quite the same."),
    ] = Quantization.float32,
    check_source: Annotated[
        Path | None, typer.Option(help="Lines to translate with both models, to compare them.")
    ] = None,
    check_reference: Annotated[
        Path | None,
        typer.Option(help="Their true translations: BLEU is told, and decides on int8."),
    ] = None,
) -> None:
    """Write a Transformer for CTranslate2 or transformers, and prove that it does the same.

    Both models translate a check set: --check-source, or else the validation text of the run that
    MODEL stands in, where its corpus is at hand, or else lines drawn from the model's vocabulary.
    Unless they agree, nothing is left of the export and the exit status is 1.
    """
    if quantization is Quantization.int8 and to is Runtime.huggingface:
        raise typer.BadParameter("--quantization int8 is for --to ctranslate2")
    if check_reference is not None and check_source is None:
        raise typer.BadParameter("--check-reference needs --check-source")

    from kakehashi.commands.streams import terminated_gently
    from kakehashi.inference.export.run import export_model
    from kakehashi.inference.folder import bundle_folder

    if output is None:
        output = bundle_folder(model) / to

    def check() -> "CheckSet | None":
        if check_source is not None:
            return _given(check_source, check_reference)
        return _validation(model)

    with terminated_gently():
        report = export_model(model, output, to=to, quantization=quantization, check=check)
    typer.echo(report)


def _given(source: Path, reference: Path | None) -> "CheckSet":
    """The lines of the files.

    Raises:
        DataError: for a file that cannot be read.
        EvaluationError: for files of unequal length.
    """
    from kakehashi.data.reading import read_lines
    from kakehashi.evaluation.scores import check_counts
    from kakehashi.inference.export.check_set import CheckSet

    lines = read_lines(source)
    if reference is None:
        return CheckSet(f"{len(lines):,} lines of {source}", lines)
    references = read_lines(reference)
    check_counts(lines, references, (str(source), str(reference)))
    return CheckSet(f"{len(lines):,} lines of {source}", lines, references)


def _validation(model: Path) -> "CheckSet | None":
    """The validation text of the run around a model, if its data are here already."""
    from kakehashi.commands.averaged import validation_text
    from kakehashi.commands.config import read_config
    from kakehashi.commands.saved import saved_config
    from kakehashi.data.notes import note
    from kakehashi.errors import KakehashiError
    from kakehashi.inference.export.check_set import CheckSet

    model = model.expanduser()
    run = next(
        (f for f in (model, model.absolute().parent) if (f / "summary.json").is_file()), None
    )
    if run is None or not (run / "config.yaml").is_file():
        return None
    try:
        config = read_config(saved_config(run))
        if not _is_here(config.data):
            note("the run's corpus is not here; checking on drawn lines instead")
            return None
        text = validation_text(run, config)
    except KakehashiError as error:
        note(f"the run's validation text cannot be had ({error}); checking on drawn lines instead")
        return None
    return CheckSet(
        f"{len(text.source):,} lines of the run's validation text", text.source, text.reference
    )


def _is_here(data: "DataConfig") -> bool:
    """Whether the corpus can be read without fetching anything."""
    from kakehashi.data.corpora.tatoeba import sentences_place
    from kakehashi.data.reading import expand

    if data.kind == "tatoeba":
        return sentences_place(expand(data.root)).is_file()
    if data.kind == "hub":
        return data.hub_path is not None and expand(data.hub_path).is_dir()
    return True
