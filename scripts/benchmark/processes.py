"""Training speed of two processes (DDP, gloo) beside that of one, on this machine's CPU.

python scripts/benchmark/processes.py [UPDATES] [TURNS]

The default model and recipe on the embedded corpus: one process with a budget of 2,048 padded
tokens a batch, with one thread and with two, and two processes of one thread with 1,024 each; the
updates hold the same pairs. In turns; one validation, whose time does not count.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

WAYS = {
    "1 process, 1 thread": (1, 1),
    "1 process, 2 threads": (1, 2),
    "2 processes, 1 thread": (2, 1),
}


def speed(processes: int, threads: int, updates: int) -> tuple[float, float]:
    """Source and target tokens a second of all processes, and the last validation's nll."""
    words = [
        f"trainer.max_updates={updates}",
        f"trainer.validate_every={updates}",
        f"trainer.devices={processes}",
        f"trainer.threads={threads}",
        f"data.batch_tokens={2048 // processes}",
        "trainer=updates",
        "trainer.accelerator=cpu",
        "callbacks=best",
        "data.test_size=50",
        "model.dropout=0",
    ]
    if processes > 1:
        words.append("trainer.strategy=ddp")
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        command = [sys.executable, "-m", "kakehashi.commands.main", "train", *words]
        subprocess.run(
            [*command, f"hydra.run.dir='{run}'"],
            env=os.environ | {"OMP_NUM_THREADS": str(threads)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        training = json.loads((run / "summary.json").read_text(encoding="utf-8"))["training"]
    seconds = training["seconds"] - training["validation_seconds"] - training["saving_seconds"]
    return processes * training["tokens"] / seconds, training["points"][-1]["nll"]


def main() -> None:
    """Print a line for each way and turn, then the ratios."""
    updates = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    best = dict.fromkeys(WAYS, 0.0)
    for _ in range(turns):
        for way, (processes, threads) in WAYS.items():
            tokens, nll = speed(processes, threads, updates)
            best[way] = max(best[way], tokens)
            print(f"{way:22} {tokens:8,.0f} tokens/s, nll {nll:.7f}", flush=True)
    one = best["1 process, 1 thread"]
    for way, tokens in best.items():
        print(f"{way:22} {tokens / one:.2f} times the first (best of {turns})")


if __name__ == "__main__":
    main()
