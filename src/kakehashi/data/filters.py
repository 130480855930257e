"""Filters of pairs: what is left out, what is changed, and an entry in the ledger for each.

Filters read a stream of pairs once, in order, and hold nothing of it but the fingerprints by which
duplicates are known.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator

from kakehashi.data.cleaning import STEPS
from kakehashi.data.config import DataConfig, FilterConfig
from kakehashi.data.integrity import sides
from kakehashi.data.languages import other_language
from kakehashi.data.ledger import Ledger, Side
from kakehashi.data.pairs import Pairs
from kakehashi.data.reading import is_blank
from kakehashi.data.scripts import script_share, scripts_of
from kakehashi.errors import ConfigError

Row = tuple[int, str, str]
"""A pair with its number: an index or a line, whatever `locate` takes."""
Check = Callable[[str, str], Side | None]
"""Takes source and target; the side for which the pair is to be left out, None if it may stay."""


class PairFilter:
    """The filters of one split, for one pass over it.

    A split in several files goes through one object, file after file, so that duplicates are
    found across them.
    """

    def __init__(
        self,
        config: FilterConfig,
        source_language: str,
        target_language: str,
        split: str,
        ledger: Ledger,
    ) -> None:
        """What is left out or changed is entered into `ledger` under `split`.

        Raises ConfigError for scripts that are unknown, or not known of a language.
        """
        self._split, self._ledger = split, ledger
        self._steps = [(name, STEPS[name]) for name in config.clean]
        self._checks = list(_checks(config, source_language, target_language))

    @property
    def active(self) -> bool:
        """Whether anything is asked for."""
        return bool(self._steps or self._checks)

    def stream(
        self, rows: Iterable[Row], locate: Callable[[int], tuple[str, int]]
    ) -> Iterator[Row]:
        """The rows that stay, cleaned, under their old numbers.

        `locate` gives the file and the line of a row, for the ledger.
        """
        enter, split = self._ledger.add, self._split
        for number, source, target in rows:
            changes: list[tuple[str, Side]] = []
            if self._steps:
                source, target, changes = self._clean(source, target)  # noqa: PLW2901
            for reason, check in self._checks:
                side = check(source, target)
                if side is not None:
                    enter(split, *locate(number), side, reason)
                    break
            else:
                for name, side in changes:
                    enter(split, *locate(number), side, name, "changed")
                yield number, source, target

    def _clean(self, source: str, target: str) -> tuple[str, str, list[tuple[str, Side]]]:
        changes = []
        for name, step in self._steps:
            cleaned = step(source), step(target)
            side = sides(cleaned[0] != source, cleaned[1] != target)
            if side is not None:
                changes.append((name, side))
                source, target = cleaned
        return source, target, changes


def filter_pairs(pairs: Pairs, config: DataConfig, split: str, ledger: Ledger) -> Pairs:
    """The pairs of a split after the filters, if `config` has them work on it.

    Raises ConfigError like `PairFilter`.
    """
    filters = config.filters
    if split not in filters.splits:
        return pairs
    chosen = PairFilter(filters, config.source_language, config.target_language, split, ledger)
    if not chosen.active:
        return pairs
    kept, sources, targets = [], [], []
    rows = zip(range(len(pairs)), pairs.source, pairs.target, strict=True)
    for i, source, target in chosen.stream(rows, pairs.place):
        kept.append(i)
        if filters.clean:
            sources.append(source)
            targets.append(target)
    selected = pairs.select(kept)
    if filters.clean:
        selected.source, selected.target = sources, targets
    return selected


def _checks(
    config: FilterConfig, source_language: str, target_language: str
) -> Iterator[tuple[str, Check]]:
    """The checks that are asked for and their reasons, in the order in which they are made."""
    if config.clean:
        yield "blank after cleaning", lambda s, t: sides(is_blank(s), is_blank(t))
    if (words := config.max_words) is not None:
        yield f"more than {words:,} words", _too_many_words(words)
    if (most := config.max_characters) is not None:
        reason = f"more than {most:,} characters"
        yield reason, lambda s, t: sides(len(s) > most, len(t) > most)
    if (ratio := config.max_ratio) is not None:
        yield f"length ratio above {ratio:g}", _too_unequal(ratio)
    if config.same:
        yield "source equals target", lambda s, t: "both" if s == t else None
    if config.min_script is not None:
        yield (
            f"less than {config.min_script:g} of the letters in the language's script",
            _wrong_script(
                config.min_script,
                _scripts("source", source_language, config.source_scripts),
                _scripts("target", target_language, config.target_scripts),
            ),
        )
    if config.language:
        of_source, of_target = other_language(source_language), other_language(target_language)
        yield "in another language", lambda s, t: sides(of_source(s), of_target(t))
    # last, so that what was left out for another reason is nobody's first occurrence
    if config.duplicates != "none":
        yield f"duplicate {config.duplicates}", _repeated(config.duplicates)


def _too_many_words(most: int) -> Check:
    def many(text: str) -> bool:
        # n words take 2 n - 1 characters at least
        return len(text) > 2 * most and len(text.split()) > most

    return lambda s, t: sides(many(s), many(t))


def _too_unequal(ratio: float) -> Check:
    def check(source: str, target: str) -> Side | None:
        shorter, longer = sorted((len(source), len(target)))
        return "both" if longer > ratio * shorter else None

    return check


def _scripts(side: str, language: str, given: list[str] | None) -> list[str]:
    scripts = scripts_of(language) if given is None else given
    if not scripts:
        raise ConfigError(
            f"data.filters.min_script: which scripts {language!r} is written in is not known; "
            f"give their ISO 15924 codes, for example data.filters.{side}_scripts=[Latn]"
        )
    return scripts


def _wrong_script(least: float, source_scripts: list[str], target_scripts: list[str]) -> Check:
    of_source, of_target = script_share(source_scripts), script_share(target_scripts)
    return lambda s, t: sides(of_source(s) < least, of_target(t) < least)


def _repeated(what: str) -> Check:
    side: Side = "both" if what == "pair" else "source" if what == "source" else "target"
    # 128 bits of each: among ten million, two different ones agree once in 10^24 times
    seen: set[bytes] = set()

    def check(source: str, target: str) -> Side | None:
        if side == "both":
            # with the length ahead no two pairs give the same text
            text = f"{len(source)} {source}{target}"
        else:
            text = source if side == "source" else target
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if digest in seen:
            return side
        seen.add(digest)
        return None

    return check
