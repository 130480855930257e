"""What a run records for its report, and the report made of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kakehashi.commands.card_facts import card_facts
from kakehashi.commands.compare import read_summary
from kakehashi.data.notes import note
from kakehashi.data.reading import is_blank, write_bytes, write_lines
from kakehashi.errors import EvaluationError
from kakehashi.inference.card import model_card
from kakehashi.inference.folder import CARD
from kakehashi.insight.report.page import page
from kakehashi.insight.report.recorded import (
    ANALYSIS,
    ATTENTION,
    REPORT,
    Recorded,
    read_json,
    write_json,
)

if TYPE_CHECKING:
    from kakehashi.commands.run import Run
    from kakehashi.commands.summary import TestResult
    from kakehashi.inference.translator import Translator

SHOWN = 10
"""Test sentences whose attention is shown."""
ALTERNATIVES = 5
"""Hypotheses of a beam that are shown at most."""
HEAVY = 1_200_000
"""Characters of a viewer that a mail still takes."""
NAME = "attention-viewer-1"
"""Its id in the page."""
SHORTEST, LONGEST = 4, 28
"""Pieces of the sentences that are shown; shorter ones only where there are not enough."""


def analyse_test(run: "Run", translator: "Translator", test: "TestResult") -> dict[str, Any] | None:
    """Analyse the translated test split and follow some of its sentences; None without one.

    Writes what the report needs of them into the run's folder, and the sentences themselves.
    """
    # not loaded where only what was recorded is read
    from kakehashi.evaluation.analysis import analyse

    if test.scores is None:
        return None
    pairs = run.corpus.test
    note(f"analysing {len(pairs):,} translations for the report")
    languages = run.corpus.source_language, run.corpus.target_language
    found = analyse(
        pairs.source, test.translations, pairs.target, run.corpus.train.target, languages
    )
    write_json(run.folder / ANALYSIS, found.as_dict())
    # a sentence from JSON or CSV may hold a line feed, a line of text may not
    for name, side in (("test_source.txt", pairs.source), ("test_reference.txt", pairs.target)):
        write_lines(run.folder / name, (line.replace("\n", " ") for line in side))
    lengths = [len(pieces) for pieces in translator.tokenizer.encode_batch(list(pairs.source))]
    longest = min(LONGEST, translator.config.max_length - 1)  # what is longer goes in parts
    lines = [pairs.source[i] for i in readable(lengths, pairs.source, longest)]
    # recorded as the page has it: weights worked out elsewhere would differ in their last digits
    write_json(run.folder / ATTENTION, {"viewer": attention_viewer(translator, lines)})
    return read_json(run.folder / ANALYSIS)


def attention_viewer(translator: "Translator", lines: Sequence[str], heavy: int = HEAVY) -> str:
    """The viewer of how a model attends on some lines, with what its beam ends with.

    Where that is more than ``heavy`` characters, as of a model with many layers and heads, it shows
    of each line the best translation alone.
    """
    from kakehashi.insight.explorer.component import scene, viewer

    if not lines:
        return ""
    beam = min(ALTERNATIVES, translator.config.decoding.beam)
    scenes = [scene(translator, line, beam=beam) for line in lines]
    shown = viewer(scenes, NAME)
    if len(shown) <= heavy:
        return shown
    alone = [scene(translator, one.line, one.paths[0].text) for one in scenes]
    return viewer(alone, NAME)


def readable(lengths: Sequence[int], lines: Sequence[str], longest: int) -> list[int]:
    """Which sentences to show: of readable lengths, these as far apart as can be, shortest first.

    Args:
        lengths: pieces of each sentence.
        lines: the sentences; blank ones are never shown.
        longest: most pieces.

    Returns:
        Their numbers, ten at most.
    """
    order = sorted(
        (i for i, line in enumerate(lines) if not is_blank(line) and lengths[i] <= longest),
        key=lambda i: (lengths[i], i),
    )
    easy = [i for i in order if lengths[i] >= SHORTEST]
    if len(easy) < SHOWN:
        easy = order[-SHOWN:]
    if not easy:
        return []
    first, last = lengths[easy[0]], lengths[easy[-1]]
    chosen = list[int]()
    for n in range(min(SHOWN, len(easy))):
        wanted = first + (last - first) * n / (SHOWN - 1)
        free = [i for i in easy if i not in chosen]
        chosen.append(min(free, key=lambda i: (abs(lengths[i] - wanted), i)))
    return sorted(chosen, key=lambda i: (lengths[i], i))


def write_page(folder: Path, summary: dict[str, Any]) -> None:
    """Write report.html from a run's summary and what else its folder holds."""
    write_bytes(folder / REPORT, page(Recorded.read(folder, summary)))


def regenerate(folder: Path) -> list[Path]:
    """Write the report and the model card of a finished run anew; returns what was written.

    The bytes are those that the run has written.

    Raises:
        EvaluationError: when something is missing or damaged.
    """
    summary = read_summary(folder)
    try:
        recorded = Recorded.read(folder, summary)
        content, card = page(recorded), model_card(card_facts(summary, recorded.analysis))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise EvaluationError(
            f"what {folder} has recorded in summary.json and analysis.json lacks what a report is "
            f"made of ({error!r}): the run was made by another version of kakehashi, or one of the "
            "files is damaged"
        ) from error
    write_bytes(folder / REPORT, content)
    written = [folder / REPORT]
    if (folder / "model").is_dir():  # it may have been moved to where it is used
        write_bytes(folder / "model" / CARD, card.encode("utf-8"))
        written.append(folder / "model" / CARD)
    return written
