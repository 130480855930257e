"""A corpus in three splits, and how any source of pairs becomes one."""

from dataclasses import dataclass, field

from kakehashi.data.config import DataConfig
from kakehashi.data.corpora.overlap import Overlap
from kakehashi.data.filters import filter_pairs
from kakehashi.data.integrity import (
    drop_blank,
    enter_blank,
    enter_controls,
    split_pairs,
)
from kakehashi.data.ledger import Ledger
from kakehashi.data.pairs import Pairs
from kakehashi.data.stream import TrainingStream
from kakehashi.errors import DataError

__all__ = ["Corpus", "Ledger", "Pairs", "assemble"]


@dataclass(frozen=True)
class Part:
    """One of the corpora that a mixture is made of."""

    name: str
    weight: float
    """How many times an epoch goes through it."""
    until: int
    """The last of train's line numbers that belongs to it."""


@dataclass
class Corpus:
    """Train, valid and test of one language pair, and what has to be said about them."""

    name: str
    source_language: str
    target_language: str
    train: Pairs
    """All of it, or a sample of a `stream`."""
    valid: Pairs
    test: Pairs
    licence: str = "not stated"
    attribution: str = ""
    provenance: dict[str, str] = field(default_factory=dict)
    """Where it came from, with versions and hashes."""
    ledger: Ledger = field(default_factory=Ledger)
    """What became of the pairs that are not in these splits, or not as they were read."""
    read: dict[str, int] = field(default_factory=dict)
    """Pairs read for each split that was given, before anything was held out or left out."""
    parts: tuple[Part, ...] = ()
    """The corpora of a mixture, in the order in which train holds them."""
    held_out: dict[str, Pairs] = field(default_factory=dict)
    """What was taken out of train for other splits, as it was before the filters; empty for a
    corpus that was found in the cache."""
    stream: TrainingStream | None = None
    """The training pairs of a corpus that is read anew in each epoch, and never kept."""


def assemble(
    config: DataConfig,
    train: Pairs,
    valid: Pairs | None,
    test: Pairs | None,
    *,
    licence: str,
    attribution: str,
    provenance: dict[str, str],
    ledger: Ledger | None = None,
    parts: tuple[Part, ...] = (),
) -> Corpus:
    """Check the pairs and make the corpus; a split that is None is held out of train.

    Training pairs with a blank side are left out. Training pairs that share a sentence with a given
    valid or test are reported, and left out where `config.drop_overlap` says so. Then valid and
    test are held out, and only then do the filters work: what they are has no influence on which
    pairs are held out, so that scores stay comparable. Test, and valid unless the filters are to
    work on it, stay as they are. Raises DataError when nothing is left to train on.

    A `ledger` has the pairs that reading left out already; they aren't in `train`.
    """
    ledger = Ledger() if ledger is None else ledger
    splits = {"train": train, "valid": valid, "test": test}
    given = {name: pairs for name, pairs in splits.items() if pairs is not None}
    read = {name: len(pairs) + ledger.left_out(name) for name, pairs in given.items()}
    for name, pairs in given.items():
        enter_controls(pairs, name, ledger)
        if name != "train":
            enter_blank(pairs, name, ledger, "kept")
    train = drop_blank(train, "train", ledger)
    apart = Overlap(ledger)
    held_out = {name: pairs for name, pairs in given.items() if name != "train"}
    train = apart.check(train, held_out, held_out if config.drop_overlap else ())
    if not len(train):
        raise DataError(f"{train.origin}: no pairs are left to train on")
    if valid is None or test is None:
        split = split_pairs(
            train,
            config.valid_size if valid is None else 0,
            config.test_size if test is None else 0,
            config.split_seed,
            # The same split for either direction: the language first in the alphabet is hashed
            # first.
            target_first=config.target_language < config.source_language,
        )
        train = split.train
        valid = split.valid if valid is None else valid
        test = split.test if test is None else test
    taken = {"valid": valid, "test": test}
    taken = {name: pairs for name, pairs in taken.items() if name not in given}
    train = filter_pairs(train, config, "train", ledger)
    valid = filter_pairs(valid, config, "valid", ledger)
    if config.filters.clean:
        # cleaning may have made sentences equal that weren't
        both = {"valid": valid, "test": test}
        dropped = both if config.drop_overlap else [name for name in both if name not in given]
        train = apart.check(train, both, dropped)
    if not len(train):
        raise DataError(f"{train.origin}: no pairs are left to train on")
    return Corpus(
        name=config.name,
        source_language=config.source_language,
        target_language=config.target_language,
        train=train,
        valid=valid,
        test=test,
        licence=licence,
        attribution=attribution,
        provenance=provenance,
        ledger=ledger,
        read=read,
        parts=parts,
        held_out=taken,
    )
