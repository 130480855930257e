"""How a command ends when it cannot go on: one message on stderr, and an exit status."""

import sys
from typing import NoReturn

FAILED = 1
INTERRUPTED = 130


def fail(error: Exception) -> NoReturn:
    """Say what is wrong, without a traceback, and end."""
    say(error)
    sys.exit(FAILED)


def say(error: Exception) -> None:
    """Say what is wrong."""
    sys.stderr.write(f"error: {error}\n")


def interrupted(remark: str = "") -> NoReturn:
    """Say that it was the person at the keyboard who ended it."""
    sys.stderr.write("\ninterrupted" + (f"; {remark}" if remark else "") + "\n")
    sys.exit(INTERRUPTED)
