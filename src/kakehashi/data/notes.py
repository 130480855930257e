"""Short notes on standard error; standard output carries results only."""

import sys

from kakehashi.processes import is_first


def note(text: str) -> None:
    """Write one line to standard error; of several processes of a run, the first one does."""
    if not is_first():
        return
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
