"""How fast pairs are filtered: the default corpus's ja-en pairs, repeated with variations.

python scripts/benchmark/filters.py [PAIRS]

Processor time for each filter alone and for all of `configs/filters/web.yaml`, for language
identification (py3langid), what they leave, the ledger's entries, and the memory of the whole
process. The corpus must have been fetched.
"""

import resource
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

from kakehashi.data.config import FilterConfig
from kakehashi.data.corpora.tatoeba import read_pairs
from kakehashi.data.filters import PairFilter, Row
from kakehashi.data.ledger import Ledger

SENTENCES = Path("data/tatoeba/sentences.tsv")
WEB: dict[str, Any] = {
    "clean": ["entities", "controls", "spaces", "nfc"],
    "max_words": 150,
    "max_characters": 1000,
    "max_ratio": 6.0,
    "same": True,
    "min_script": 0.5,
    "duplicates": "pair",
}


def rows(n: int) -> list[Row]:
    """So many pairs; in each repetition the sentences carry its number, so that they differ."""
    pairs = read_pairs(SENTENCES, "ja", "en", Ledger())
    made: list[Row] = []
    repetition = 0
    while len(made) < n:
        mark = f" {repetition}" if repetition else ""
        sentences = zip(pairs.source, pairs.target, strict=True)
        for source, target in islice(sentences, n - len(made)):
            made.append((len(made) + 1, source + mark, target + mark))
        repetition += 1
    return made


def main() -> None:
    """Print a table."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    made = rows(n)
    print(f"{n:,} pairs\n{'filter':<16}  seconds    pairs/s     kept  ledger")
    each = [(name, {name: value}) for name, value in WEB.items()]
    for name, settings in [*each, ("all", WEB), ("language", {"language": True})]:
        ledger = Ledger()
        chosen = PairFilter(FilterConfig(**settings), "ja", "en", "train", ledger)
        start = time.process_time()
        kept = sum(1 for _ in chosen.stream(made, lambda line: ("made", line)))
        seconds = time.process_time() - start
        print(f"{name:<16} {seconds:8.2f} {n / seconds:10,.0f} {kept:8,} {len(ledger):7,}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:,.0f} MB")


if __name__ == "__main__":
    main()
