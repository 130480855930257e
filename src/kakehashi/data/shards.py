"""A split that lies in several files: `part-*.tsv.gz`, or `part-*.de` with `part-*.en`."""

import glob
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kakehashi.data.config import SplitConfig
from kakehashi.data.pairfiles import Row, plain_rows, table_rows
from kakehashi.data.reading import Watch, content_suffix, expand
from kakehashi.errors import DataError

_WILDCARD = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class ShardFiles:
    """One file with both sides, or two files."""

    paths: tuple[str, ...]
    source_column: str | None
    target_column: str | None

    @property
    def name(self) -> str:
        """For messages."""
        return ", ".join(self.paths)

    def rows(self, watch: Watch | None = None) -> Iterator[Row]:
        """Line, source, target; raises DataError where the files can't be read or paired."""
        if len(self.paths) == 2:
            return plain_rows(*self.paths, watch)
        return table_rows(self.paths[0], self.source_column, self.target_column, watch)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(expand(path).stat().st_size for path in self.paths)


def find_shards(
    split: SplitConfig,
    source_column: str | None,
    target_column: str | None,
    languages: tuple[str, str],
) -> list[ShardFiles]:
    """The files of a split in the order of their names; one, unless a path has wildcards.

    `languages` name the fields of JSON lines and parquet where no columns are given. Raises
    DataError when a pattern matches nothing, and when two patterns do not match files that go
    together, naming the first that stands alone.
    """
    if split.path is not None:
        shards = []
        for path in _matches(split.path):
            columns = source_column, target_column
            if content_suffix(path) not in (".tsv", ".csv"):
                columns = source_column or languages[0], target_column or languages[1]
            shards.append(ShardFiles((path,), *columns))
        return shards
    assert split.source is not None and split.target is not None
    sources, targets = _matches(split.source), _matches(split.target)
    if _WILDCARD.search(split.source) and _WILDCARD.search(split.target):
        _check_partners(split.source, sources, split.target, targets)
    elif len(sources) != len(targets):
        raise DataError(_unequal(split.source, sources, split.target, targets))
    return [ShardFiles(pair, None, None) for pair in zip(sources, targets, strict=True)]


def is_pattern(path: str | Path) -> bool:
    """Whether it has wildcards, and isn't a file that is named like that."""
    return _WILDCARD.search(str(path)) is not None and not expand(path).exists()


def _matches(pattern: str) -> list[str]:
    if not is_pattern(pattern):
        return [pattern]
    found = sorted(path for path in glob.glob(str(expand(pattern))) if Path(path).is_file())
    if not found:
        raise DataError(f"no file matches {pattern} (looked from {Path.cwd()})")
    return found


def _check_partners(source: str, sources: list[str], target: str, targets: list[str]) -> None:
    of_source, of_target = _middles(source, sources), _middles(target, targets)
    if of_source == of_target:
        return
    message = _unequal(source, sources, target, targets)
    alone = sorted(set(of_source) ^ set(of_target))
    if alone:
        where = sources[of_source.index(alone[0])] if alone[0] in of_source else None
        where = where or targets[of_target.index(alone[0])]
        message += f"; the first without a partner is {where}"
    raise DataError(message)


def _middles(pattern: str, paths: list[str]) -> list[str]:
    """What the wildcards stand for: the name between the pattern's fixed beginning and end."""
    pattern = str(expand(pattern))
    wild = [match.start() for match in re.finditer(r"[*?\[\]]", pattern)]
    before, after = wild[0], len(pattern) - wild[-1] - 1
    return [path[before : len(path) - after] for path in paths]


def _unequal(source: str, sources: list[str], target: str, targets: list[str]) -> str:
    return (
        f"{source} matches {len(sources):,} file{'s'[: len(sources) != 1]} and {target} matches "
        f"{len(targets):,}: each needs its partner, with the same name in the place of the "
        "wildcards"
    )
