"""Lines a second and peak memory of preparing a large corpus: a first start and a second one.

python scripts/benchmark/ingestion.py [--pairs 1000000] [--shards 4] [--root data] [--lexicon]

The corpus is made of the Japanese-English pairs of the embedded one: all of them, then again each
joined with another one, at other distances, until there are enough. It lies in gzipped TSV shards
in a temporary folder, as does the cache. Each start is a process of its own, whose peak memory is
what the system counted for it, libraries included. Prepared is: read, checked, split, tokenizer
trained, tokenised. With --lexicon the counts of translations that training starts from, too.
"""

import argparse
import gzip
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from kakehashi.data.config import DataConfig, SplitConfig
from kakehashi.data.corpora import load_corpus
from kakehashi.data.corpora.tatoeba import load_tatoeba
from kakehashi.data.module import TranslationData
from kakehashi.data.prepare import prepare_tokenizer
from kakehashi.data.tokenizer_config import TokenizerConfig
from kakehashi.training.lexicon import learn_lexicon


def pairs(root: str) -> Iterator[tuple[str, str]]:
    """Pairs without end, no two alike."""
    corpus = load_tatoeba(
        DataConfig(root=root, source_language="ja", target_language="en", valid_size=0, test_size=0)
    )
    sources, targets = list(corpus.train.source), list(corpus.train.target)
    n, copy = len(sources), 0
    while True:
        for i in range(n):
            j = (i + 7919 * copy) % n
            if copy:
                yield sources[i] + sources[j], f"{targets[i]} {targets[j]}"
            else:
                yield sources[i], targets[i]
        copy += 1


def make(folder: Path, root: str, n_pairs: int, n_shards: int) -> None:
    """Write the shards."""
    rows = islice(pairs(root), n_pairs)
    for shard in range(n_shards):
        size = n_pairs // n_shards + (shard < n_pairs % n_shards)
        with gzip.open(folder / f"part-{shard}.tsv.gz", "wt", 1, "utf-8", newline="\n") as stream:
            stream.writelines(f"{source}\t{target}\n" for source, target in islice(rows, size))


def prepare(folder: Path, *, lexicon: bool) -> None:
    """What comes before training; prints a line for each step."""
    config = DataConfig(
        name="large",
        kind="files",
        source_language="ja",
        target_language="en",
        root=str(folder),
        train=SplitConfig(path=str(folder / "part-*.tsv.gz")),
    )
    first = start = time.perf_counter()

    def done(what: str) -> None:
        nonlocal start
        now = time.perf_counter()
        print(
            f"  {what:<34} {now - start:6.1f} s {2 * n / (now - start):12,.0f} lines/s, "
            f"peak memory {_peak():5,.0f} MB"
        )
        start = now

    print(f"  libraries: {_peak():,.0f} MB")
    corpus = load_corpus(config)
    n = sum(map(len, (corpus.train, corpus.valid, corpus.test)))
    done("read, checked and split")
    tokenizer = prepare_tokenizer(TokenizerConfig(), corpus, folder)
    done("tokenizer")
    data = TranslationData(corpus, tokenizer, root=folder)
    done("tokenised")
    batches = data.train_dataloader()
    next(iter(batches))
    done(f"{len(batches):,} batches")
    if lexicon:
        learn_lexicon(data.train_tokens, tokenizer.vocab_size)
        done("lexicon")
    start = first
    done(f"all, {n:,} pairs")


def _peak() -> float:
    """Most memory that this process has held, in MB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def main() -> None:
    """Make the corpus, then prepare it twice."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--root", default="data", help="where the embedded corpus is kept")
    parser.add_argument("--lexicon", action="store_true")
    parser.add_argument("--prepare", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.prepare:
        prepare(given.prepare, lexicon=given.lexicon)
        return
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), given.root, given.pairs, given.shards)
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        print(f"{given.pairs:,} pairs in {given.shards} files, {size / 1e6:,.0f} MB", flush=True)
        for start in ("first", "second"):
            print(f"{start} start:", flush=True)
            words = [sys.executable, __file__, "--prepare", folder]
            subprocess.run(words + ["--lexicon"] * given.lexicon, check=True)


if __name__ == "__main__":
    main()
