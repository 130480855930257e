"""Pairs a second and peak memory of training pairs that are read as a stream, and going on in it.

python scripts/benchmark/streaming.py [--pairs 1000000] [--shards 4] [--workers 0] [--root data]

The corpus is that of ingestion.py, in parquet shards in a temporary folder. One process reads a
whole epoch, with nothing trained; another one then takes the state that was saved in its middle.
Peak memory is what the system counted, libraries included, of the process and of the worker.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from ingestion import pairs

from kakehashi.data.config import DataConfig
from kakehashi.data.corpora import load_corpus
from kakehashi.data.module import TranslationData
from kakehashi.data.prepare import prepare_tokenizer
from kakehashi.data.streaming import StreamLoader
from kakehashi.data.tokenizer_config import TokenizerConfig


def make(folder: Path, root: str, n_pairs: int, n_shards: int) -> None:
    """Write the shards."""
    rows = pairs(root)
    for shard in range(n_shards):
        size = n_pairs // n_shards + (shard < n_pairs % n_shards)
        sources, targets = zip(*islice(rows, size), strict=True)
        table = pa.table({"ja": sources, "en": targets})
        pq.write_table(table, folder / f"train-{shard}.parquet", row_group_size=10_000)


def read(folder: Path, n_pairs: int, workers: int) -> None:
    """Read an epoch, or go on in the middle if it was; prints a line for each step."""
    state = folder / "state.json"
    start = time.perf_counter()

    def done(what: str, n: int = 0) -> None:
        nonlocal start
        now = time.perf_counter()
        rate = f"{n / (now - start):9,.0f} pairs/s" if n else " " * 17
        print(f"  {what:<42} {now - start:7.1f} s {rate}, peak memory {_peak():5,.0f} MB")
        start = now

    print(f"  libraries: {_peak():,.0f} MB")
    config = DataConfig(
        name="large",
        kind="hub",
        source_language="ja",
        target_language="en",
        hub_path=str(folder / "pairs"),
        streaming=True,
        root=str(folder / "data"),
    )
    corpus = load_corpus(config)
    tokenizer = prepare_tokenizer(TokenizerConfig(), corpus, folder / "data")
    data = TranslationData(
        corpus, tokenizer, root=folder / "data", workers=workers, ledger=folder / "ledger.jsonl"
    )
    done("sample, held-out splits and tokenizer")
    loader = data.train_dataloader()
    assert isinstance(loader, StreamLoader)
    if state.exists():
        loader.load_state_dict(json.loads(state.read_text()))
        next(iter(loader))
        done("first batch after going on in the middle")
        return
    batches = iter(loader)
    next(batches)
    done("first batch")
    middle, n_read = loader.state_dict(), 0
    for batch in batches:
        position = loader.state_dict()
        if position["position"]["start"][0]:
            break
        n_read += len(batch.index)
        if n_read < n_pairs / 2:
            middle = position
    done("the rest of the epoch", n_read)
    state.write_text(json.dumps(middle))
    if workers:
        del batches
        children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        print(f"  the worker's peak memory: {children * _unit() / 1e6:,.0f} MB")


def _unit() -> int:
    return 1 if sys.platform == "darwin" else 1024


def _peak() -> float:
    """Most memory that this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _unit() / 1e6


def main() -> None:
    """Make the corpus, read it, go on in it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--root", default="data", help="where the embedded corpus is kept")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.make:
        make(given.make, given.root, given.pairs, given.shards)
        return
    if given.read:
        read(given.read, given.pairs, given.workers)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pairs").mkdir()
        # in a process of its own: one that is started has the peak memory of the one that starts it
        again = [sys.executable, __file__, *sys.argv[1:]]
        subprocess.run([*again, "--make", str(folder / "pairs")], check=True)
        size = sum(path.stat().st_size for path in (folder / "pairs").iterdir())
        print(f"{given.pairs:,} pairs in {given.shards} files, {size / 1e6:,.0f} MB", flush=True)
        for start in ("an epoch", "going on"):
            print(f"{start}:", flush=True)
            subprocess.run([*again, "--read", name], check=True)
        left = sum(p.stat().st_size for p in (folder / "data").rglob("*") if p.is_file())
        print(f"kept on disk: {left / 1e6:,.1f} MB")


if __name__ == "__main__":
    main()
