"""What the intervals and p-values of a large test set cost, in seconds and memory.

python scripts/benchmark/evaluation.py [LINES] [ours|sacrebleu]

LINES (50,000) random sentences of 12 words from a vocabulary of 5,000, and translations of which a
word in four is another one. ours: BLEU and chrF of two systems on 1,000 common resampled sets;
sacrebleu: the library's own BLEU, then chrF, of one. Processor time; peak memory of the process.
"""

import random
import resource
import sys
import time

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from kakehashi.evaluation import Metric, evaluate

WORDS, VOCABULARY = 12, 5000


def sentences(lines: int) -> tuple[list[str], list[str], list[str]]:
    """References and the translations of two systems."""
    draw = random.Random(1)
    words = [
        "".join(draw.choices("abcdefghijklmnop", k=draw.randint(2, 8))) for _ in range(VOCABULARY)
    ]
    references = [draw.choices(words, k=WORDS) for _ in range(lines)]

    def system() -> list[str]:
        return [
            " ".join(w if draw.random() > 0.25 else draw.choice(words) for w in reference)
            for reference in references
        ]

    return [" ".join(reference) for reference in references], system(), system()


def told(name: str, start: float) -> None:
    """Print the figures so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{name}: {time.process_time() - start:.1f} s, peak {peak:,.0f} MB", flush=True)


def main(lines: int, whose: str) -> None:
    """Print the figures of one way."""
    references, first, second = sentences(lines)
    told("sentences", 0)
    start = time.process_time()
    if whose == "ours":
        evaluate([first, second], references, [Metric("bleu"), Metric("chrf")])
        told("BLEU and chrF of two systems", start)
        return
    for metric in (BLEU(), CHRF()):
        metric.corpus_score(first, [references], n_bootstrap=1000)
        told(type(metric).__name__, start)


if __name__ == "__main__":
    lines, whose = (sys.argv[1:] + ["50000", "ours"][len(sys.argv) - 1 :])[:2]
    main(int(lines), whose)
