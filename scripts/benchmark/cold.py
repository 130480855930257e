"""Processor seconds of a cold `kakehashi translate` of one line.

python scripts/benchmark/cold.py MODEL [options of kakehashi translate]

Five processes one after the other, each with everything: Python, imports, loading, translating.
"Of which torch" is a process that imports torch and does nothing else.
"""

import resource
import subprocess
import sys
from statistics import median

LINE = "Guten Tag, wie geht es Ihnen?\n"
ROUNDS = 5


def spent(command: list[str]) -> float:
    """Processor seconds of one process and all that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, input=LINE, text=True, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(arguments: list[str]) -> None:
    """Print the median and the least."""
    translate = [sys.executable, "-m", "kakehashi.commands.main", "translate", *arguments]
    whole, torch = [], []
    for _ in range(ROUNDS):
        whole.append(spent(translate))
        torch.append(spent([sys.executable, "-c", "import torch"]))
    print(
        f"{median(whole):.2f} CPU-s (least {min(whole):.2f}); importing torch alone "
        f"{median(torch):.2f} (least {min(torch):.2f})"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
