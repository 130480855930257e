"""How fast searches are beside other programs', one after the other in the same run.

    python scripts/benchmark/peers_decoding.py ENVIRONMENTS [--size tiny|base|rnn] [--threads N]
        [--rounds N] [--searches beam,greedy]

ENVIRONMENTS is a folder with a Python environment for each peer, apart from Kakehashi's own:

    python3.11 -m venv ENVIRONMENTS/transformers     # and opennmt, joeynmt
    ENVIRONMENTS/transformers/bin/pip install torch==2.13.0 transformers==5.24.0
    ENVIRONMENTS/opennmt/bin/pip install torch==2.13.0 configargparse pyyaml six pyonmttok \
        rapidfuzz sacrebleu tensorboard flask waitress ctranslate2==4.8.5
    ENVIRONMENTS/opennmt/bin/pip install --no-deps OpenNMT-py==3.5.1
    ENVIRONMENTS/joeynmt/bin/pip install torch==2.13.0 sacrebleu pandas pyyaml matplotlib seaborn \
        sentencepiece packaging datasets tensorboard sacremoses subword-nmt importlib_metadata
    ENVIRONMENTS/joeynmt/bin/pip install --no-deps joeynmt==2.3.0

A peer without an environment is left out. Every program has a random model of the same size
(tiny: 4+4 layers, d 128, feed-forward 256, 4 heads; base: 6+6, 512, 2048, 8; post-norm with biases,
8,000 pieces, tied; rnn: embeddings 128, 256 GRU units, 256 of attention; joeynmt's output reads the
256 units and cannot be tied to embeddings of 128, ours reads 128 maxout units and is) and
translates the same 500 sentences of 16 pieces and EOS in batches of 64; every hypothesis goes on
for 17 pieces. Loading and a first round are not counted; then the programs take turns. On one
thread processor time counts, on more the clock. ``peers/`` holds the programs.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

PEERS = {
    "tiny": ("transformers", "opennmt"),
    "base": ("transformers", "opennmt"),
    "rnn": ("joeynmt",),
}
SENTENCES = 500
PROGRAMS = Path(__file__).parent / "peers"
Process = subprocess.Popen[str]


def start(name: str, python: Path, size: str, threads: int) -> Process:
    """A program that waits to be asked."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    return subprocess.Popen(
        [str(python), str(PROGRAMS / f"run_{name}.py"), size, str(threads)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        text=True,
    )


def seconds(process: Process, search: str, clock: str) -> float:
    """How long a program takes for one round."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(search + "\n")
    process.stdin.flush()
    for line in process.stdout:
        if line.startswith("{"):
            return float(json.loads(line)[clock])
    raise SystemExit(f"{process.args!r} ended: run it by hand to see why")


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("environments", type=Path)
    parser.add_argument("--size", choices=PEERS, default="tiny")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--searches", default="beam,greedy")
    options = parser.parse_args()
    pythons = {"kakehashi": Path(sys.executable)}
    for name in PEERS[options.size]:
        python = options.environments / name / "bin" / "python"
        if python.exists():
            pythons[name] = python
    processes = {
        name: start(name, python, options.size, options.threads) for name, python in pythons.items()
    }
    clock = "processor" if options.threads == 1 else "wall"
    print(f"{options.size}, threads: {options.threads}, {clock} time, {options.rounds} rounds\n")
    print(
        "| search | program | sentences/s (median) | best round | Kakehashi so many times as fast |"
    )
    print("|---|---|---|---|---|")
    for search in options.searches.split(","):
        rounds: dict[str, list[float]] = {name: [] for name in processes}
        for number in range(options.rounds + 1):
            for name, process in processes.items():
                taken = seconds(process, search, clock)
                if number:
                    rounds[name].append(taken)
        ours = rounds["kakehashi"]
        for name, times in rounds.items():
            by_round = median(theirs / own for theirs, own in zip(times, ours, strict=True))
            middle, best = SENTENCES / median(times), SENTENCES / min(times)
            ratio = "" if name == "kakehashi" else f"{by_round:.2f}"
            print(f"| {search} | {name} | {middle:.0f} | {best:.0f} | {ratio} |", flush=True)
    for process in processes.values():
        process.communicate()


if __name__ == "__main__":
    main()
