"""A corpus in three splits, and how any source of pairs becomes one."""

from dataclasses import dataclass, field

from kakehashi.data.config import DataConfig
from kakehashi.data.integrity import drop_blank, overlaps, split_pairs
from kakehashi.data.notes import note
from kakehashi.data.pairs import Ledger, Pairs
from kakehashi.errors import DataError

__all__ = ["Corpus", "Ledger", "Pairs", "assemble"]


@dataclass
class Corpus:
    """Train, valid and test of one language pair, and what has to be said about them."""

    name: str
    source_language: str
    target_language: str
    train: Pairs
    valid: Pairs
    test: Pairs
    licence: str = "not stated"
    attribution: str = ""
    provenance: dict[str, str] = field(default_factory=dict)
    """Where it came from, with versions and hashes."""
    ledger: Ledger = field(default_factory=Ledger)


def assemble(
    config: DataConfig,
    train: Pairs,
    valid: Pairs | None,
    test: Pairs | None,
    *,
    licence: str,
    attribution: str,
    provenance: dict[str, str],
) -> Corpus:
    """Check the pairs and make the corpus; a split that is None is held out of train.

    Training pairs with a blank side are left out; valid and test stay as they are. Training pairs
    that share a sentence with a given valid or test are reported, and left out where
    `config.drop_overlap` says so. Raises DataError when nothing is left to train on.
    """
    ledger = Ledger()
    train = drop_blank(train, "train", ledger)
    for name, given in (("valid", valid), ("test", test)):
        if given is not None:
            train = _check_overlap(train, given, name, config.drop_overlap, ledger)
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
    if not len(train):
        raise DataError(f"{train.origin}: no pairs are left to train on")
    for total, count in ledger.totals().items():
        note(f"{config.name}, {total}: {count:,} pairs")
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
    )


def _check_overlap(train: Pairs, given: Pairs, name: str, drop: bool, ledger: Ledger) -> Pairs:
    found = overlaps(train, given)
    for i, side in found.items():
        ledger.add("train", train.lines[i], f"sentence also in {name}", side, dropped=drop)
    if not (drop and found):
        return train
    return train.select([i for i in range(len(train)) if i not in found])
