"""Lines longer than a model's training: translated whole, cut, or sentence by sentence.

python scripts/benchmark/long_lines.py RUN [N]

Test sentences of the run's corpus, N (300) of them in their order, are put together to lines of
about 1.5, 2 and 4 times the pieces of its longest training sentence, with a space between them, and
so are the references. BLEU and chrF of the lines; one thread, the run's own search.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from kakehashi.commands.config import read_config
from kakehashi.commands.saved import saved_config
from kakehashi.data.corpora import load_corpus
from kakehashi.evaluation.scores import corpus_scores
from kakehashi.inference.options import Options
from kakehashi.inference.translator import Translator

TIMES = (0.25, 0.5, 1.0, 1.5, 2.0, 4.0)


def long_lines(lengths: Sequence[int], least: float) -> Iterator[slice]:
    """Runs of sentences that have together at least so many pieces."""
    start = pieces = 0
    for place, length in enumerate(lengths, 1):
        pieces += length
        if pieces >= least:
            yield slice(start, place)
            start, pieces = place, 0


def main(run: Path, number: int) -> None:
    """Print a row for each length and way."""
    torch.set_num_threads(1)
    test = load_corpus(read_config(saved_config(run)).data).test
    source, reference = test.source[:number], test.target[:number]
    ours = Translator.load(run / "model")
    whole = Translator(ours.engine, ours.tokenizer, replace(ours.config, max_length=10**9))
    lengths = [len(row) for row in ours.tokenizer.encode_batch(list(source))]
    print(f"{number} sentences, at most {ours.config.max_length} pieces in training")
    for times in (1 / ours.config.max_length, *TIMES):
        groups = list(long_lines(lengths, times * ours.config.max_length))
        lines = [" ".join(source[group]) for group in groups]
        expected = [" ".join(reference[group]) for group in groups]
        ways = {
            "whole": (whole, Options()),
            "as by default": (ours, Options()),
            "by sentences": (ours, Options(split=True)),
        }
        for name, (translator, options) in ways.items():
            found = translator.translate(lines, options)
            texts = [translation.text for translation in found]
            scores = corpus_scores(texts, expected, ours.config.target_language)
            seconds = sum(translation.seconds for translation in found)
            print(
                f"{times:4.1f} times  {len(lines):4} lines  {name:14} BLEU {scores.bleu.value:5.2f}"
                f"  chrF {scores.chrf.value:5.2f}  {seconds:6.1f} s"
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 300)
