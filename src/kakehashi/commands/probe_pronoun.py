"""`kakehashi probe pronoun`: whether self-attention shows whom a pronoun means."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kakehashi.commands import searching as given
from kakehashi.commands.parallel import Output
from kakehashi.commands.progress import progress

if TYPE_CHECKING:
    from kakehashi.inference.translator import Translator
    from kakehashi.insight.pronoun import Looks
    from kakehashi.insight.winomt import Question


def pronoun(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model or run folder.")],
    sentences: Annotated[
        Path,
        typer.Option(help="WinoMT's table: gender, number of the entity's word, sentence, entity."),
    ],
    output: Output = None,
    threads: given.Threads = None,
    device: given.Device = "cpu",
) -> None:
    """How often each encoder head, at a pronoun, puts more weight on whom it means.

    Percent with 95 % intervals, beside rules without a model. balanced and twins tell heads that
    know meanings from those that know places: these get 50 and 0. -o writes all columns as .tsv,
    .md or .json. What is counted how is said in the user's guide.
    """
    from kakehashi.commands.streams import output_stream, write_text
    from kakehashi.commands.tables import columns
    from kakehashi.insight.pronountable import counts, for_people, pronoun_records
    from kakehashi.insight.table import cells, check_format, table_lines
    from kakehashi.insight.winomt import read_questions

    if output is not None:
        check_format(output)
    found = read_questions(sentences)
    with output_stream(output) as stream:
        translator = given.load_translator([model], device, threads, given.EngineName.torch)
        looks = _look(translator, found.resolved)
        exchanged = [q.exchanged for q in found.resolved if q.exchangeable]
        rows = pronoun_records(found.resolved, looks, exchanged, _look(translator, exchanged))
        facts = counts(found.resolved, looks)
        facts |= {f"left out: {why}": n for why, n in sorted(found.unresolved.items())}
        if output is None:
            write_text(stream, columns(cells(for_people(rows))))
        else:
            shown = for_people(rows) if output.suffix == ".md" else rows
            write_text(stream, table_lines(output, shown, facts))
    for name, value in facts.items():
        said = f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"
        typer.echo(f"{name}: {said}", err=True)


def _look(translator: "Translator", questions: "Sequence[Question]") -> "Looks":
    from kakehashi.insight.ablation import torch_engine
    from kakehashi.insight.pronoun import pronoun_looks

    with progress("reading attention", "sentences", len(questions)) as report:
        return pronoun_looks(
            torch_engine(translator), translator.tokenizer, questions, report.advance
        )
