"""`kakehashi align`: which words of given translations stand for which of their sources."""

from collections import deque
from pathlib import Path
from typing import Annotated

import typer

from kakehashi.commands import searching as given
from kakehashi.commands.parallel import Output, Source, Target, count_pairs, line_pairs, remembered
from kakehashi.commands.translate import Format


def align(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model or run folder.")],
    source: Source,
    target: Target,
    output: Output = None,
    form: Annotated[
        Format, typer.Option("--format", help="text: pairs. jsonl: the pieces and theirs too.")
    ] = Format.text,
    others: given.Together = None,
    batch_size: given.BatchSize = None,
    threads: given.Threads = None,
    device: given.Device = "cpu",
    engine: given.Engine = given.EngineName.torch,
) -> None:
    """Align the words of a text and its translation: pairs `i-j` of word i and its translation j.

    Words are what white space divides, counted from 0; a line for each line, empty for a blank one.
    """
    from kakehashi.commands.progress import progress
    from kakehashi.commands.requests import json_line
    from kakehashi.commands.streams import output_stream, write_text
    from kakehashi.inference.alignment import pharaoh

    total = count_pairs(source, target)
    with output_stream(output) as stream:
        translator = given.load_translator([model, *(others or ())], device, threads, engine)
        texts = deque[tuple[str, str]]()
        results = translator.align(remembered(line_pairs(source, target), texts), batch_size)
        with progress("aligning", "lines", total, show=output is not None) as report:
            for number, found in enumerate(results, 1):
                line, translation = texts.popleft()
                pairs = pharaoh(found.word_alignment)
                if form is Format.jsonl:
                    record = {
                        "line": number,
                        "source": line,
                        "target": translation,
                        "word_alignment": pairs,
                        "source_tokens": found.source_tokens,
                        "tokens": found.tokens,
                        "alignment": found.alignment,
                    }
                    pairs = json_line(record)
                write_text(stream, [pairs])
                report.advance()
