"""The options of the search that several commands share, and what they come to together."""

import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from kakehashi.inference.options import Options
    from kakehashi.inference.translator import Translator


class EngineName(StrEnum):
    """What a model runs on."""

    torch = "torch"
    ctranslate2 = "ctranslate2"


MODEL, SEARCH, SAMPLES = "The model", "The search", "Other ways to translate"

Together = Annotated[
    list[Path] | None,
    typer.Option(
        "--with",
        metavar="MODEL",
        rich_help_panel=MODEL,
        help="Another model that has its say at every step: an ensemble. May be repeated.",
    ),
]
Device = Annotated[
    str,
    typer.Option(rich_help_panel=MODEL, help="cpu, cuda, or auto: a GPU if there is one."),
]
Engine = Annotated[
    EngineName,
    typer.Option(
        rich_help_panel=MODEL,
        help="ctranslate2: a Transformer once it has been exported, several times faster on a CPU.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(min=1, rich_help_panel=MODEL, help="Cores to use; else all, or OMP_NUM_THREADS."),
]
BatchSize = Annotated[
    int | None,
    typer.Option(min=1, rich_help_panel=MODEL, help="Sentences at a time; 1 answers line by line."),
]
Beam = Annotated[
    int | None,
    typer.Option(min=1, rich_help_panel=SEARCH, help="Hypotheses kept; 1 is greedy, the fastest."),
]
Patience = Annotated[
    float | None,
    typer.Option(
        min=1,
        rich_help_panel=SEARCH,
        help="A line is done when the beam times this many hypotheses have ended.",
    ),
]
LengthPenalty = Annotated[
    float | None,
    typer.Option(
        min=0, rich_help_panel=SEARCH, help="Larger prefers longer translations; 0 shorter."
    ),
]
CoveragePenalty = Annotated[
    float | None,
    typer.Option(
        min=0,
        rich_help_panel=SEARCH,
        help="Larger prefers translations that look at all of the line; 0 is off.",
    ),
]
MinRatio = Annotated[
    float | None,
    typer.Option(min=0, rich_help_panel=SEARCH, help="Fewest pieces for each of the line's."),
]
MaxRatio = Annotated[
    float | None,
    typer.Option(
        min=0,
        rich_help_panel=SEARCH,
        help="Most pieces for each of the line's, a few more allowed.",
    ),
]
NoRepeatNgram = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        rich_help_panel=SEARCH,
        help="Say no N pieces in a row twice; 0 is off.",
    ),
]
RepetitionPenalty = Annotated[
    float | None,
    typer.Option(
        min=1, rich_help_panel=SEARCH, help="Larger repeats pieces less; 1 is off, 1.2 is much."
    ),
]
Sample = Annotated[
    bool,
    typer.Option(
        "--sample", rich_help_panel=SAMPLES, help="Draw translations by their probability."
    ),
]
Diverse = Annotated[
    int | None,
    typer.Option(
        min=2,
        metavar="GROUPS",
        rich_help_panel=SAMPLES,
        help="Share the beam out to so many groups that are kept from saying the same.",
    ),
]
Diversity = Annotated[
    float | None,
    typer.Option(
        min=0, rich_help_panel=SAMPLES, help="How strongly, with --diverse; 0.5 if not given."
    ),
]
RiskSamples = Annotated[
    int | None,
    typer.Option(
        "--mbr",
        min=2,
        metavar="SAMPLES",
        rich_help_panel=SAMPLES,
        help="Of so many samples the one most like the others (minimum Bayes risk, chrF).",
    ),
]
Temperature = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=SAMPLES,
        help="Of samples: below 1 the probable, above 1 the odd; 1 if not given.",
    ),
]
TopK = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="K",
        rich_help_panel=SAMPLES,
        help="Of samples: only the K most probable pieces; 0 is off.",
    ),
]
TopP = Annotated[
    float | None,
    typer.Option(
        metavar="P",
        rich_help_panel=SAMPLES,
        help="Of samples: only the fewest pieces that have probability P together; 1 is off.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        rich_help_panel=SAMPLES, help="Of samples: another one draws others; 1 if not given."
    ),
]


def load_translator(
    models: Sequence[Path], device: str, threads: int | None, engine: EngineName
) -> "Translator":
    """The model, or the ensemble of several, on so many cores.

    Raises:
        BundleError: when a folder cannot be used, or the models do not go together.
        ConfigError: when the device cannot, or the engine does not run the model.
    """
    if threads is not None:
        # Read when the library that computes is loaded; where it was before, it has to be told.
        os.environ["OMP_NUM_THREADS"] = str(threads)
        if "torch" in sys.modules:
            import torch

            torch.set_num_threads(threads)
    from kakehashi.allocator import keep_freed_memory
    from kakehashi.inference.translator import Translator

    keep_freed_memory()
    return Translator.load(models, device, engine)


def search_options(
    *,
    sample: bool | None = None,
    diverse: int | None = None,
    diversity: float | None = None,
    mbr: int | None = None,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    scored: bool = True,
    **given: Any,
) -> "Options":
    """Options of a call; ``given`` are those that have the same name there.

    ``sample`` is None for a command that has no such option; ``scored``: see ``Beam``.

    Raises:
        typer.BadParameter: for options that contradict each other.
        ConfigError: for one out of range.
    """
    from kakehashi.decoding.methods import Beam, DiverseBeam, Method, Sampling
    from kakehashi.inference.options import MinimumRisk, Options

    ways = {"--sample": bool(sample), "--diverse": diverse is not None, "--mbr": mbr is not None}
    chosen = [name for name, asked in ways.items() if asked]
    if len(chosen) > 1:
        raise typer.BadParameter(
            f"{' and '.join(chosen)} are different ways to translate: give one"
        )
    settings = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    drawing: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
    drawn = sample or mbr is not None
    if drawing and not drawn:
        ways_to_draw = "--mbr" if sample is None else "--sample or --mbr"
        raise typer.BadParameter(f"{_named(drawing)} is for samples: give {ways_to_draw} too")
    if diversity is not None and diverse is None:
        raise typer.BadParameter("--diversity is for a diverse beam: give --diverse too")
    ranking = ("beam", "patience", "length_penalty", "coverage_penalty")
    if drawn and (ranks := {name: 1 for name in ranking if given.get(name) is not None}):
        raise typer.BadParameter(f"{_named(ranks)} is for a beam, and {chosen[0]} has none")
    method: Method | MinimumRisk = Beam(scored)
    if sample:
        method = Sampling(**drawing)
    elif mbr is not None:
        method = MinimumRisk(mbr, Sampling(**drawing))
    elif diverse is not None:
        method = DiverseBeam(diverse, *([] if diversity is None else [diversity]))
    return Options(method=method, **given)


def _named(settings: dict[str, Any]) -> str:
    """The first of some settings as it is typed."""
    return f"--{next(iter(settings)).replace('_', '-')}"
