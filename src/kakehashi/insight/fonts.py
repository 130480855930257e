"""Fonts that can write a label: those of the system, and of packages, that have its characters."""

import unicodedata
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from matplotlib import font_manager
from matplotlib.ft2font import FT2Font

DEFAULT = "DejaVu Sans"
"""Comes with matplotlib: Latin, Greek, Cyrillic, Hebrew, Arabic, mathematics; no CJK."""

BUNDLES = ("matplotlib_fontja", "notojp_matplotlib")
"""Python packages of kakehashi[fonts] that hold font files: IPAexGothic and Noto Sans CJK."""

EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "FULLWIDTH", "IDEOGRAPHIC")
"""How Unicode's names of what these packages can write begin."""

EXTRA = "pip install 'kakehashi[fonts]'"
DEBIAN = "apt install fonts-noto-core fonts-symbola"


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
    a label is not patched together from many. Of fonts that do equally well, one with TrueType
    outlines comes first (a PDF can hold it as it is), then the one whose Chinese characters have
    the shapes of the language, then one without serifs.
    """
    wanted = {c for label in labels for c in label if not _silent(c)}
    default = font_manager.findfont(DEFAULT)
    missing = {c for c in wanted if ord(c) not in _characters(default)}
    families = [DEFAULT]
    region = _region(wanted)
    while missing:
        gains = {
            entry.name: (
                sum(ord(c) in _characters(entry.fname) for c in missing),
                has_truetype_outlines(entry),
                entry.name.endswith(region),
                "Serif" not in entry.name and "Mono" not in entry.name,
            )
            for entry in _regular_fonts()
        }
        best = max(sorted(gains), key=lambda name: gains[name], default=None)
        if best is None or not gains[best][0]:
            break
        families.append(best)
        file = next(entry.fname for entry in _regular_fonts() if entry.name == best)
        missing = {c for c in missing if ord(c) not in _characters(file)}
    return families, missing


def all_truetype(families: Iterable[str]) -> bool:
    """Whether all these families have TrueType outlines, which a PDF can hold as Type 42."""
    files = {entry.name: entry for entry in _regular_fonts()}
    return all(name == DEFAULT or has_truetype_outlines(files[name]) for name in families)


def install_hint(missing: Iterable[str]) -> str:
    """What to install for a font with these characters."""
    east = [unicodedata.name(c, "?").startswith(EAST_ASIAN) for c in missing]
    commands = [EXTRA] * any(east) + [f"on Debian or Ubuntu {DEBIAN}"] * (not all(east))
    return "; ".join(commands)


@cache
def has_truetype_outlines(entry: font_manager.FontEntry) -> bool:
    """Whether the font's outlines are TrueType's, not PostScript's."""
    try:
        with open(entry.fname, "rb") as file:
            if file.read(4) == b"ttcf":  # a collection: its table of fonts starts at byte 12
                file.seek(12 + 4 * entry.index)
                file.seek(int.from_bytes(file.read(4), "big"))
            else:
                file.seek(0)
            return file.read(4) in (b"\0\1\0\0", b"true")
    except OSError:
        return False


def _region(characters: set[str]) -> str:
    """How the name of a font ends that shapes Chinese characters as text with these does."""
    names = [unicodedata.name(c, "") for c in characters]
    if any(name.startswith(("HIRAGANA", "KATAKANA")) for name in names):
        return "JP"
    return "KR" if any(name.startswith("HANGUL") for name in names) else "SC"


@cache
def _regular_fonts() -> tuple[font_manager.FontEntry, ...]:
    """One upright regular file of each family, as matplotlib would choose it."""
    _add_new_fonts()
    files: dict[str, font_manager.FontEntry] = {}
    for entry in font_manager.fontManager.ttflist:
        plain = entry.style == "normal" and entry.weight in (400, "normal", "regular")
        # Some have "glyphs" for all characters: a box that names the script.
        pictures = entry.name.startswith("Last Resort")
        if plain and not pictures and entry.name not in files:
            files[entry.name] = entry
    return tuple(files.values())


def _add_new_fonts() -> None:
    """Tell matplotlib of fonts in packages, and of those installed since it last looked.

    It keeps a list of the system's fonts for good, so one installed on its own advice would not be
    found. The packages are not imported: that would change matplotlib's settings.
    """
    known = {entry.fname for entry in font_manager.fontManager.ttflist}
    for path in [*_bundled_fonts(), *sorted(font_manager.findSystemFonts())]:
        if path not in known:
            try:
                font_manager.fontManager.addfont(path)
            except (RuntimeError, OSError):
                continue  # a file that matplotlib cannot use


def _bundled_fonts() -> list[str]:
    """The font files of the packages that are installed."""
    specs = filter(None, map(find_spec, BUNDLES))
    folders = [Path(folder) for spec in specs for folder in spec.submodule_search_locations or ()]
    return [
        str(file)
        for folder in folders
        for file in sorted(folder.rglob("*"))
        if file.suffix in (".ttf", ".otf")
    ]


def _silent(character: str) -> bool:
    """Whether nothing is drawn for it: controls, zero-width characters, variation selectors."""
    return unicodedata.category(character) in ("Cc", "Cf") or "\ufe00" <= character <= "\ufe0f"
