"""The link beside run folders that points to the newest finished run."""

import os
from pathlib import Path


def point_latest(folder: Path) -> None:
    """Let ``latest`` beside a run's folder point to it; readers see the old link or the new one."""
    link = folder.parent / "latest"
    temporary = folder.parent / f".latest.{os.getpid()}"
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(folder.name, target_is_directory=True)
    temporary.replace(link)
