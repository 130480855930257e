"""The text to be audited, from files or the embedded corpus: sides of unequal length included."""

from collections.abc import Sequence
from pathlib import Path

from kakehashi.audit.findings import Text
from kakehashi.data.config import DataConfig, SplitConfig
from kakehashi.data.corpora import load_corpus
from kakehashi.data.corpora.hub import every_split
from kakehashi.data.pairfiles import SUFFIXES, read_table
from kakehashi.data.reading import content_suffix, read_lines
from kakehashi.data.scripts import scripts_of
from kakehashi.data.shards import find_shards, is_pattern
from kakehashi.errors import DataError

CORPUS = "tatoeba"
HUB = "hub:"
"""Before the name of a data set on the hub."""
SPLITS = {"validation": "valid", "dev": "valid"}
"""What data sets call the split that is valid here."""
Two = tuple[str | None, str | None]


def read_text(name: str, files: Sequence[str | Path], languages: Two, columns: Two) -> Text:
    """The split `name` from one file with both sides, or from a file for each.

    Two plain files need not have the same number of lines: that is for the audit to tell. Languages
    that are not given are taken from the names of plain files, as in train.de. A name with
    wildcards stands for all files that match, see ``_sharded``. Raises DataError for files that
    can't be read, have no lines, or bytes that are not UTF-8, and for a wrong number of files.
    """
    if len(files) in (1, 2) and any(map(is_pattern, files)):
        return _sharded([str(path) for path in files], languages, columns)
    if len(files) == 1:
        pairs = read_table(files[0], *_columns(files[0], languages, columns))
        lines = [int(line) for line in pairs.lines]
        return Text(pairs.source, pairs.target, lines, pairs.origin, *_known(languages))
    if len(files) != 2:
        raise DataError(f"{name}: give one file with both sides, or source and target")
    sides = [read_lines(path) for path in files]
    for path, side in zip(files, sides, strict=True):
        if not side:
            raise DataError(f"{path}: there are no lines in it")
    found = [code or language_of(path) for code, path in zip(languages, files, strict=True)]
    numbers = range(1, max(map(len, sides)) + 1)
    return Text(sides[0], sides[1], numbers, ", ".join(map(str, files)), *found)


def _sharded(files: Sequence[str], languages: Two, columns: Two) -> Text:
    """The pairs of all files that match, one file after the other; their lines are counted on.

    Raises DataError like training: for what does not match, and for files of unequal length.
    """
    if len(files) == 1:
        split = SplitConfig(path=files[0])
        source_column, target_column = _columns(files[0], languages, columns)
        codes = _known(languages)
    else:
        split = SplitConfig(*files)
        source_column, target_column = columns
        source, target = (
            code or language_of(path) for code, path in zip(languages, files, strict=True)
        )
        codes = source, target
    sources, targets, lines, before = list[str](), list[str](), list[int](), 0
    for shard in find_shards(split, source_column, target_column, codes):
        line = 0
        for line, source, target in shard.rows():
            lines.append(before + line)
            sources.append(source)
            targets.append(target)
        before += line
    name = ", ".join(files)
    if not lines:
        raise DataError(f"{name}: there are no pairs in it")
    return Text(sources, targets, lines, name, *codes)


def read_corpus(languages: Two, root: Path) -> Text:
    """All pairs of the embedded corpus, fetched if need be.

    Languages that are not given are the default ones. Raises CorpusError when it can't be had.
    """
    default = DataConfig()
    source, target = languages
    config = DataConfig(
        source_language=source or default.source_language,
        target_language=target or default.target_language,
        root=str(root),
        valid_size=0,
        test_size=0,
    )
    pairs = load_corpus(config).train
    codes = (config.source_language, config.target_language)
    lines = [int(line) for line in pairs.lines]
    return Text(pairs.source, pairs.target, lines, pairs.origin, *codes)


def read_hub(
    path: str, part: str | None, languages: Two, columns: Two, root: Path
) -> dict[str, Text]:
    """All splits of a data set on the hub, or of a local folder of the same form; train first.

    `part` is the data set's configuration (subset). Fields that are not given are named like the
    languages. Raises DataError without languages or such fields, CorpusError when it can't be had.
    """
    source, target = languages
    if not source or not target:
        raise DataError(f"{HUB}{path}: say --source-language and --target-language")
    config = DataConfig(
        kind="hub",
        hub_path=path,
        hub_name=part,
        source_language=source,
        target_language=target,
        source_column=columns[0],
        target_column=columns[1],
        root=str(root),
    )
    texts = {}
    for name, rows in every_split(config).items():
        lines = [line for line, _, _ in rows]
        sides = [text for _, text, _ in rows], [text for _, _, text in rows]
        texts[SPLITS.get(name, name)] = Text(*sides, lines, f"{path} ({name})", source, target)
    return dict(sorted(texts.items(), key=lambda item: item[0] != "train"))


def language_of(path: str | Path) -> str:
    """The code in which a plain file's name ends (train.de, train.de.xz); empty if it's none."""
    code = content_suffix(path).removeprefix(".")
    return code if scripts_of(code) is not None else ""


def _columns(path: str | Path, languages: Two, columns: Two) -> Two:
    """The columns of a table: where none are said, fields are named like the languages.

    Raises DataError where neither is said.
    """
    suffix = content_suffix(path)
    if suffix in (".tsv", ".csv"):
        return columns
    source, target = (column or code for column, code in zip(columns, languages, strict=True))
    if suffix in SUFFIXES and (source is None or target is None):
        raise DataError(
            f"{path}: say which fields hold the two sides (--source-column and --target-column; "
            "where they are named like the languages, --source-language and --target-language)"
        )
    return source, target


def _known(languages: Two) -> tuple[str, str]:
    return languages[0] or "", languages[1] or ""
