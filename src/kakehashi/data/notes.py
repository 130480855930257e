"""Short notes on standard error; standard output carries results only."""

import sys


def note(text: str) -> None:
    """Write one line to standard error."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
