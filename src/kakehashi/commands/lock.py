"""One process at a time trains in a run's folder."""

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kakehashi.errors import ConfigError
from kakehashi.processes import is_first

if os.name == "posix":
    import fcntl

PATIENCE = 10
"""Tries, a tenth of a second apart: who asks whether a run goes on holds its lock for a moment."""
_open: set[int] = set()
"""Folders that this process holds."""


def _let_go() -> None:
    """In a worker: it may outlive its parent, and would hold the lock of a run that is no more."""
    while _open:
        os.close(_open.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep other runs out of the folder; the lock goes with the process, however it ends.

    Raises:
        ConfigError: when another process holds it.
    """
    if os.name != "posix" or not is_first():
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    _open.add(descriptor)
    try:
        for _ in range(PATIENCE):
            if _lock(descriptor):
                break
            time.sleep(0.1)
        else:
            raise ConfigError(
                f"another process is training in {folder} at this moment: wait for it, or stop it"
            )
        yield
    finally:
        _open.discard(descriptor)
        os.close(descriptor)


def is_held(folder: Path) -> bool:
    """Whether some process is training in the folder."""
    if os.name != "posix":
        return False
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        return not _lock(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Lock an open folder; False when another process has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        # some network file systems know no locks: no reason not to train there
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            raise
    return True
