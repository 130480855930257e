"""How a command ends when it cannot go on: one message on stderr, and an exit status."""

import signal
import sys
from typing import NoReturn

FAILED = 1


def fail(error: Exception) -> NoReturn:
    """Say what is wrong, without a traceback."""
    sys.stderr.write(f"error: {error}\n")
    sys.exit(FAILED)


def interrupted(remark: str = "", number: int = signal.SIGINT) -> NoReturn:
    """Say that it was somebody's wish, with the exit status that shells give to the signal."""
    what = "interrupted" if number == signal.SIGINT else f"stopped by {signal.Signals(number).name}"
    sys.stderr.write(f"\n{what}" + (f"; {remark}" if remark else "") + "\n")
    sys.exit(128 + number)
