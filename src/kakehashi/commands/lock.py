"""One process at a time trains in a run's folder."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kakehashi.errors import ConfigError

if os.name == "posix":
    import fcntl

OTHERS = ("RANK", "LOCAL_RANK", "SLURM_PROCID")
"""What torchrun, Lightning and SLURM number the processes of one run with."""


def is_main_process() -> bool:
    """Whether this is the first, or the only, process of a run."""
    return all(os.environ.get(name, "0") == "0" for name in OTHERS)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep other runs out of the folder; the lock goes with the process, however it ends.

    Raises:
        ConfigError: when another process holds it.
    """
    if os.name != "posix" or not is_main_process():
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if not _lock(descriptor):
            raise ConfigError(
                f"another process is training in {folder} at this moment: wait for it, or stop it"
            )
        yield
    finally:
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
