"""A ledger that grows while a stream passes, and can be cut back to where a run goes on from."""

import json
import os
from pathlib import Path

from kakehashi.data.ledger import Ledger, LedgerTotal
from kakehashi.data.reading import write_bytes
from kakehashi.errors import DataError


class LedgerFile:
    """What a process has entered, in a file of its own; in memory are the totals alone."""

    def __init__(self, path: Path, head: Ledger) -> None:
        """`head` has the entries that the file begins with; its totals are not counted here."""
        self._path, self._head = path, b"".join(head.lines())
        self._totals = Ledger()
        self.size = 0
        """Bytes after the head."""

    @classmethod
    def of_process(cls, path: Path, head: Ledger, rank: int) -> "LedgerFile":
        """The first process writes `path`, process 3 the file ledger-3.jsonl beside it."""
        if rank == 0:
            return cls(path, head)
        return cls(path.with_stem(f"{path.stem}-{rank}"), Ledger())

    def append(self, ledger: Ledger) -> None:
        """Write these entries, and sync. Raises DataError when they can't be written."""
        content = b"".join(ledger.lines())
        try:
            with self._path.open("ab") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise DataError(f"cannot write {self._path}: {error.strerror or error}") from error
        self.size += len(content)
        self._totals.include(ledger.totals())

    def cut(self, size: int) -> None:
        """Go back to where the file had `size` bytes after its head.

        Raises DataError when it isn't as long as that, or is another run's.
        """
        whole = len(self._head) + size
        self._totals = Ledger()
        if size == 0:
            write_bytes(self._path, self._head)
        else:
            try:
                with self._path.open("r+b") as stream:
                    if stream.read(len(self._head)) != self._head or stream.seek(0, 2) < whole:
                        raise DataError(
                            f"{self._path} is not the ledger that the run had when it was saved; "
                            "put that one back to go on"
                        )
                    stream.truncate(whole)
                    self._count(stream.seek(len(self._head)))
            except OSError as error:
                raise DataError(f"cannot go on in {self._path}: {error.strerror}") from error
        self.size = size

    def _count(self, start: int) -> None:
        with self._path.open("rb") as stream:
            stream.seek(start)
            for line in stream:
                entry = json.loads(line.decode("utf-8", "surrogateescape"))
                place = [(entry["file"], entry["line"])]
                kind = entry["split"], entry["reason"], entry["action"]
                self._totals.include([LedgerTotal(*kind, 1, place)])

    def totals(self) -> list[LedgerTotal]:
        """Of what was appended."""
        return self._totals.totals()
