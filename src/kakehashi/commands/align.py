"""`kakehashi align`: which words of given translations stand for which of their sources."""

from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kakehashi.commands import gold as people
from kakehashi.commands import searching as given
from kakehashi.commands.parallel import Output, Source, Target, count_pairs, line_pairs, remembered
from kakehashi.commands.translate import Format
from kakehashi.errors import ConfigError, DataError
from kakehashi.evaluation.links import Symmetrisation

if TYPE_CHECKING:
    from kakehashi.inference.settings import BundleConfig
    from kakehashi.inference.translator import Translator


def align(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model or run folder.")],
    source: Source,
    target: Target,
    output: Output = None,
    form: Annotated[
        Format, typer.Option("--format", help="text: pairs. jsonl: the pieces and theirs too.")
    ] = Format.text,
    layer: people.Layer = None,
    head: people.Head = None,
    shift: people.Shift = None,
    reverse: Annotated[
        Path | None,
        typer.Option(
            "--with-reverse",
            metavar="MODEL",
            rich_help_panel=people.ATTENTION,
            help="A model of the other direction: the alignments of both become one.",
        ),
    ] = None,
    symmetrisation: Annotated[
        Symmetrisation | None,
        typer.Option(
            "--symmetrise",
            rich_help_panel=people.ATTENTION,
            help=f"How they do; else {Symmetrisation.grow_diag_final_and}.",
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            "--refine",
            metavar="ROUNDS",
            min=1,
            rich_help_panel=people.ATTENTION,
            help="Or by counting over the whole text, that often, where both agree.",
        ),
    ] = None,
    prefix: Annotated[
        int | None,
        typer.Option(
            min=1,
            rich_help_panel=people.ATTENTION,
            help="With --refine: words that begin with the same letters, so many, count as one.",
        ),
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=people.GOLD,
            help="File of alignments that people made: tells the error rate, on stderr.",
        ),
    ] = None,
    first: people.First = 0,
    turned: people.Turned = False,
    others: given.Together = None,
    batch_size: given.BatchSize = None,
    threads: given.Threads = None,
    device: given.Device = "cpu",
    engine: given.Engine = given.EngineName.torch,
) -> None:
    """Align the words of a text and its translation: pairs `i-j` of word i and its translation j.

    Words are what white space divides, counted from 0; a line for each line, empty for a blank one.
    They are read off the attention that the model's folder names (see `kakehashi probe alignment`).
    """
    from kakehashi.commands.progress import progress
    from kakehashi.commands.requests import json_line
    from kakehashi.commands.streams import output_stream, write_text
    from kakehashi.evaluation.links import symmetrise, write_links
    from kakehashi.inference.alignment import pharaoh

    check_refinement(rounds, prefix, reverse, symmetrisation)
    total = count_pairs(source, target)
    wanted = None if gold is None else people.read_gold(gold, first, turned)
    if wanted is not None and total is not None and total != len(wanted):
        raise DataError(
            f"{gold} has {len(wanted):,} lines and {source} has {total:,}: line k of one must be "
            "the alignment of line k of the other"
        )
    links = list[frozenset[tuple[int, int]]]()
    with output_stream(output) as stream:
        translator = given.load_translator([model, *(others or ())], device, threads, engine)
        people.look_at(translator, layer, head, shift)
        other = None
        if reverse is not None:
            other = given.load_translator([reverse], device, threads, engine)
            check_directions(translator.config, other.config)
        if rounds is not None and other is not None:
            pairs = list(line_pairs(source, target))
            links = refined(translator, other, pairs, rounds, prefix, batch_size)
            for number, (pair, words) in enumerate(zip(pairs, links, strict=True), 1):
                written = write_links(words)
                if form is Format.jsonl:
                    written = json_line(
                        {
                            "line": number,
                            "source": pair[0],
                            "target": pair[1],
                            "word_alignment": written,
                        }
                    )
                write_text(stream, [written])
        else:
            texts = deque[tuple[str, str]]()
            results = translator.align(remembered(line_pairs(source, target), texts), batch_size)
            backwards = None
            if other is not None:
                backwards = other.align(line_pairs(target, source), batch_size)
            how = symmetrisation or Symmetrisation.grow_diag_final_and
            with progress("aligning", "lines", total, show=output is not None) as report:
                for number, found in enumerate(results, 1):
                    line, translation = texts.popleft()
                    words = frozenset(found.word_alignment)
                    written = pharaoh(found.word_alignment)
                    if backwards is not None:
                        back = frozenset((i, j) for j, i in next(backwards).word_alignment)
                        words = symmetrise(words, back, how)
                        written = write_links(words)
                    links.append(words)
                    if form is Format.jsonl:
                        record = {
                            "line": number,
                            "source": line,
                            "target": translation,
                            "word_alignment": written,
                            "source_tokens": found.source_tokens,
                            "tokens": found.tokens,
                            "alignment": found.alignment,
                        }
                        written = json_line(record)
                    write_text(stream, [written])
                    report.advance()
    if wanted is not None:
        from kakehashi.evaluation.alignment import alignment_score

        typer.echo(str(alignment_score(links, wanted)), err=True)


def refined(
    translator: "Translator",
    other: "Translator",
    pairs: list[tuple[str, str]],
    rounds: int,
    prefix: int | None,
    batch_size: int | None,
) -> list[frozenset[tuple[int, int]]]:
    """The links of all pairs, from the attention of both directions; see ``refine``."""
    from kakehashi.commands.progress import progress
    from kakehashi.inference.refinement import refine

    turned = [(target, source) for source, target in pairs]
    with progress("reading both ways", "lines", 2 * len(pairs)) as report:
        forward, backward = [], []
        for words in translator.word_attention(pairs, batch_size):
            forward.append(words)
            report.advance()
        for words in other.word_attention(turned, batch_size):
            backward.append(words)
            report.advance()
    return refine(pairs, forward, backward, rounds, prefix)


def check_refinement(
    rounds: int | None,
    prefix: int | None,
    reverse: Path | None,
    symmetrisation: Symmetrisation | None,
) -> None:
    """Raises ConfigError for options that have no meaning together."""
    if rounds is None:
        if prefix is not None:
            raise ConfigError("--prefix says how words are counted, which --refine does: give both")
    elif reverse is None:
        raise ConfigError("--refine joins two directions: name the other with --with-reverse MODEL")
    elif symmetrisation is not None:
        raise ConfigError("--refine and --symmetrise are two ways to join directions: give one")


def check_directions(one: "BundleConfig", other: "BundleConfig") -> None:
    """Raises ConfigError unless one model translates back what the other translates."""
    there = one.source_language, one.target_language
    back = other.target_language, other.source_language
    if there != back:
        raise ConfigError(
            f"the model translates {' to '.join(there)}, and the one of the other direction "
            f"{' to '.join(reversed(back))}: it has to translate {' to '.join(reversed(there))}"
        )
