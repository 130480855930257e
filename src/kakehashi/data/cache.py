"""Folders of the cache: there whole, or not at all."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kakehashi.data.reading import sync_folder
from kakehashi.errors import DataError


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A temporary neighbour of `folder` to write into, which is synced and takes its name at last.

    When another process has made the same folder meanwhile, that one stays. Nothing is left
    behind by an error. Raises DataError, naming the folder, when it can't be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".part-"))
        try:
            yield temporary
            sync_folder(temporary)
            try:
                temporary.rename(folder)
            except OSError:
                if not folder.exists():
                    raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise DataError(f"cannot write {folder}: {error.strerror or error}") from error
