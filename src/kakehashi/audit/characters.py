"""Characters that are hardly ever meant: invisible, control, private, broken ones, odd spaces."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from kakehashi.audit.findings import Finding, Hits, Severity, Text

_CJK = frozenset(("ja", "zh", "ko", "yue"))
_RIGHT_TO_LEFT = frozenset(("ar", "fa", "he", "ur", "yi", "ps", "sd", "ug", "dv", "ckb"))


@dataclass(frozen=True)
class OddCharacters:
    """A class of characters that deserves a finding of its own."""

    code: str
    severity: Severity
    title: str
    pattern: str
    advice: str
    except_languages: frozenset[str] = frozenset()
    """Languages that are written with these."""


# Joiners are letters' business in Arabic, Indic and neighbouring scripts, and part of emoji; after
# a Latin, Greek, Cyrillic, Han or kana character they are dirt.
_MISPLACED_JOINER = r"(?<![\u0590-\u1cff\u2190-\u2bff\ufe0f\ufb50-\ufdff\U0001f000-\U0001faff])"

ODD_CHARACTERS = (
    OddCharacters(
        "characters.replacement",
        "warning",
        "the replacement character",
        "\ufffd",
        "a character was lost in an earlier conversion: fetch the text again, or leave these out",
    ),
    OddCharacters(
        "characters.surrogate",
        "warning",
        "half a surrogate pair, which UTF-8 cannot write",
        "[\ud800-\udfff]",
        "a character was cut in two in an earlier conversion; it will be read as U+FFFD",
    ),
    OddCharacters(
        "characters.control",
        "warning",
        "control characters (TAB and NUL among them)",
        "[\x00-\x1f\x7f-\x84\x86-\x9f]",
        "a TAB often joins two columns, other controls are leftovers of a conversion",
    ),
    OddCharacters(
        "characters.separator",
        "warning",
        "line separators inside a line",
        "[\u2028\u2029\x85]",
        "many tools split lines here and shift all that follows; this one does not",
    ),
    OddCharacters(
        "characters.bom",
        "warning",
        "a byte order mark inside the text",
        "\ufeff",
        "files were joined without dropping the mark at their start",
    ),
    OddCharacters(
        "characters.bidi",
        "warning",
        "marks that change the direction of writing",
        "[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]",
        "invisible, and learnt as part of the words beside them",
        _RIGHT_TO_LEFT,
    ),
    OddCharacters(
        "characters.zero_width",
        "warning",
        "zero-width characters",
        f"[\u200b\u2060-\u2064\u180e]|{_MISPLACED_JOINER}[\u200c\u200d]",
        "invisible, and a word with one inside is another word",
    ),
    OddCharacters(
        "characters.soft_hyphen",
        "warning",
        "soft hyphens",
        "\xad",
        "invisible, and a word with one inside is another word",
    ),
    OddCharacters(
        "characters.private_use",
        "warning",
        "characters for private use, or none at all",
        "[\ue000-\uf8ff\ufdd0-\ufdef\ufffe\uffff\U000f0000-\U0010ffff]",
        "they mean something in one font only",
    ),
    OddCharacters(
        "characters.nbsp",
        "note",
        "no-break spaces",
        "\xa0",
        "a word after one is not the word after a space; French puts them before ; : ! ?",
    ),
    OddCharacters(
        "characters.odd_space",
        "note",
        "spaces of other widths",
        "[\u1680\u2000-\u200a\u202f\u205f]",
        "a word after one is not the word after a space",
    ),
    OddCharacters(
        "characters.ideographic_space",
        "note",
        "ideographic spaces",
        "\u3000",
        "",
        _CJK,
    ),
)

_SPACES = (
    ("spaces.trailing", "lines that end in a space", re.compile(r"\s\Z")),
    ("spaces.leading", "lines that begin with a space", re.compile(r"\A\s")),
    ("spaces.double", "two spaces or more in a row", re.compile(r"(?<=\S)  +(?=\S)")),
)


def odd_characters(text: Text) -> Iterator[Finding]:
    """The classes of ODD_CHARACTERS and the spaces at the wrong place, side by side."""
    classes = [(odd, re.compile(odd.pattern)) for odd in ODD_CHARACTERS]
    any_of_them = re.compile("|".join(odd.pattern for odd in ODD_CHARACTERS))
    for side, lines, language in text.sides():
        found = {odd.code: Hits() for odd in ODD_CHARACTERS}
        points: dict[str, Counter[str]] = {odd.code: Counter() for odd in ODD_CHARACTERS}
        spaces = {code: Hits() for code, _, _ in _SPACES}
        for index, line in enumerate(lines):
            # str.isprintable is false for all of them but U+FFFD.
            if (not line.isprintable() or "\ufffd" in line) and any_of_them.search(line):
                _classify(index, line, classes, found, points)
            if line != line.strip() or "  " in line:
                for code, _, pattern in _SPACES:
                    if line.strip() and pattern.search(line):
                        spaces[code].add(index)
        for odd in ODD_CHARACTERS:
            if found[odd.code].count and language not in odd.except_languages:
                title = f"{odd.title}: {_named(points[odd.code])}"
                yield found[odd.code].finding(text, odd.code, odd.severity, title, side, odd.advice)
        for code, title, _ in _SPACES:
            if spaces[code].count:
                yield spaces[code].finding(text, code, "note", title, side)


def _classify(
    index: int,
    line: str,
    classes: list[tuple[OddCharacters, re.Pattern[str]]],
    found: dict[str, Hits],
    points: dict[str, Counter[str]],
) -> None:
    for odd, pattern in classes:
        if characters := pattern.findall(line):
            here = Counter(characters)
            points[odd.code].update(here)
            named = " ".join(f"U+{ord(c):04X}" for c in here)
            found[odd.code].add(index, named, len(characters))


def _named(points: Counter[str]) -> str:
    """The three most frequent ones with their counts: `U+00A0 x 44`."""
    shown = ", ".join(f"U+{ord(c):04X} × {n:,}" for c, n in points.most_common(3))
    return shown + (", ..." if len(points) > 3 else "")


def normal_forms(text: Text) -> Iterator[Finding]:
    """Lines that are not in Unicode's composed form (NFC), and letters written in both ways."""
    for side, lines, _ in text.sides():
        hits = Hits()
        decomposed: set[str] = set()
        composed: set[str] = set()
        for index, line in enumerate(lines):
            if line.isascii():
                continue
            if unicodedata.is_normalized("NFC", line):
                composed.update(line)
                continue
            changed = set(unicodedata.normalize("NFC", line)) - set(line)
            decomposed |= changed
            composed.update(set(line))
            hits.add(index, " ".join(sorted(changed)[:5]))
        if hits.count:
            both = sorted(decomposed & composed)
            title = "lines not in the composed form NFC"
            if both:
                title += f"; written both ways: {' '.join(both[:10])}"
            advice = "the same letter in two spellings makes two words of one: normalise to NFC"
            yield hits.finding(
                text, "characters.not_nfc", "warning" if both else "note", title, side, advice
            )
