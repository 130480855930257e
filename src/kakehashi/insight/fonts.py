"""Fonts that can write a label: those of the system that have its characters."""

import unicodedata
from collections.abc import Iterable
from functools import cache

from matplotlib import font_manager
from matplotlib.ft2font import FT2Font

DEFAULT = "DejaVu Sans"
"""Comes with matplotlib: Latin, Greek, Cyrillic, Hebrew, Arabic, mathematics; no CJK."""

PACKAGES = {
    "CJK": "fonts-noto-cjk",
    "HIRAGANA": "fonts-noto-cjk",
    "KATAKANA": "fonts-noto-cjk",
    "HANGUL": "fonts-noto-cjk",
    "FULLWIDTH": "fonts-noto-cjk",
    "IDEOGRAPHIC": "fonts-noto-cjk",
}
OTHERS = "fonts-noto-core, fonts-symbola"


@cache
def _characters(path: str) -> frozenset[int]:
    """Code points that the font file can draw; none where matplotlib cannot use the file."""
    try:
        font = FT2Font(path)
        return frozenset(font.get_charmap()) if font.scalable else frozenset()
    except (RuntimeError, OSError):
        return frozenset()


def fonts_for(labels: Iterable[str]) -> tuple[list[str], set[str]]:
    """Font families that together write the labels, and the characters that none of them has.

    The families are in the order in which matplotlib should try them; the fewest that do, so that
    a label is not patched together from many.
    """
    wanted = {c for label in labels for c in label if not _silent(c)}
    default = font_manager.findfont(DEFAULT)
    missing = {c for c in wanted if ord(c) not in _characters(default)}
    families = [DEFAULT]
    while missing:
        gains = {
            entry.name: {c for c in missing if ord(c) in _characters(entry.fname)}
            for entry in _regular_fonts()
        }
        best = max(sorted(gains), key=lambda name: len(gains[name]), default=None)
        if best is None or not gains[best]:
            break
        families.append(best)
        missing -= gains[best]
    return families, missing


def install_hint(missing: Iterable[str]) -> str:
    """Debian's packages with fonts for these characters."""
    packages = {
        PACKAGES.get(unicodedata.name(c, "?").split(" ")[0].split("-")[0], OTHERS) for c in missing
    }
    return ", ".join(sorted(packages))


def _regular_fonts() -> list[font_manager.FontEntry]:
    """One upright regular file of each family, as matplotlib would choose it."""
    files: dict[str, font_manager.FontEntry] = {}
    for entry in font_manager.fontManager.ttflist:
        plain = entry.style == "normal" and entry.weight in (400, "normal", "regular")
        # Some have "glyphs" for all characters: a box that names the script.
        pictures = entry.name.startswith("Last Resort")
        if plain and not pictures and entry.name not in files:
            files[entry.name] = entry
    return list(files.values())


def _silent(character: str) -> bool:
    """Whether nothing is drawn for it: controls, zero-width characters, variation selectors."""
    return unicodedata.category(character) in ("Cc", "Cf") or "\ufe00" <= character <= "\ufe0f"
