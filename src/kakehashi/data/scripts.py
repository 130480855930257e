"""Which scripts a language is written in, and how much of a text is in them.

Scripts go by their ISO 15924 codes (Latn, Cyrl, Hani); a character's comes from Unicode's tables.
"""

from collections.abc import Callable, Collection

from kakehashi.errors import ConfigError

_BY_SCRIPTS = {
    "Latn": """
        af an ast bm br bs ca ceb co cs cy da de en eo es et eu fi fil fo fr fy ga gd
        gl gn ha haw hmn hr ht hu id ig is it jv kl ku la lb ln lt lv mg mi ms mt nb
        nl nn no ny oc om pl pt qu rm rn ro rw sc sk sl sm sn so sq st su sv sw tk tl
        tn to tr ts ty vi vo wo xh yo zu""",
    "Cyrl": "ab av ba be bg ce cv kv ky mk os ru sah tg tt udm uk",
    "Cyrl Latn": "az kk sh sr uz",
    "Cyrl Mong": "mn",
    "Arab": "ar azb bal ckb fa ps sd ug ur",
    "Thaa": "dv",
    "Hebr": "he iw yi",
    "Grek": "el grc",
    "Armn": "hy hyw",
    "Geor": "ka xmf",
    "Deva": "awa bho hi hne mai mr ne new sa",
    "Beng": "as bn",
    "Guru Arab": "pa",
    "Gujr": "gu",
    "Orya": "or",
    "Taml": "ta",
    "Telu": "te",
    "Knda": "kn",
    "Mlym": "ml",
    "Sinh": "si",
    "Thai": "th",
    "Laoo": "lo",
    "Mymr": "my shn",
    "Khmr": "km",
    "Tibt": "bo dz",
    "Ethi": "am ti",
    "Olck": "sat",
    "Cher": "chr",
    "Hang Hani": "ko",
    "Hira Kana Hani": "ja",
    "Hani Bopo": "gan lzh wuu yue zh",
}
_SCRIPTS = {code: keys.split() for keys, codes in _BY_SCRIPTS.items() for code in codes.split()}
_WRITTEN_WITH = {
    "Jpan": ["Hira", "Kana", "Hani"],
    "Kore": ["Hang", "Hani"],
    "Hans": ["Hani", "Bopo"],
    "Hant": ["Hani", "Bopo"],
}
"""ISO 15924's codes of writing systems, which are no scripts of single characters."""


def scripts_of(language: str) -> list[str] | None:
    """The scripts that a language is written in; None where this table doesn't know.

    A script in a language's tag (zh-Hant, deu_Latn) counts before the table.
    """
    first, *rest = language.replace("_", "-").split("-")
    for part in rest:
        if len(part) == 4 and part.isalpha():
            return _WRITTEN_WITH.get(part.title(), [part.title()])
    return _SCRIPTS.get(first.lower())


def script_share(scripts: Collection[str]) -> Callable[[str], float]:
    """A function that tells which share of a text's letters is of these scripts, from 0 to 1.

    Letters that belong to no script, such as those of mathematics, don't count; a text without
    letters has a share of 1. Raises ConfigError for a code that Unicode doesn't know.
    """
    from fontTools.unicodedata import script_name

    for code in scripts:
        if script_name(code, default="") == "":
            raise ConfigError(
                f"there is no script {code!r}; scripts go by their ISO 15924 codes: Latn, Cyrl, "
                "Grek, Arab, Hani, Hira, Kana, Hang, Deva and so on"
            )
    table = _Table(frozenset(scripts))

    def share(text: str) -> float:
        marks = text.translate(table)
        return marks.count(_IN) / len(marks) if marks else 1.0

    return share


_IN, _OUT = "+", "-"


class _Table(dict[int, str | None]):
    """For `str.translate`: letters of the scripts become +, other ones -, all else vanishes.

    Each character is looked up in Unicode's tables when it is first seen.
    """

    def __init__(self, scripts: frozenset[str]) -> None:
        super().__init__()
        self._scripts = scripts

    def __missing__(self, code: int) -> str | None:
        from fontTools.unicodedata import script_extension

        character = chr(code)
        mark = None
        if character.isalpha():
            # the long vowel mark of Japanese, for one, is common to Hira and Kana
            known = script_extension(character) - {"Zyyy", "Zinh", "Zzzz"}
            if known:
                mark = _OUT if known.isdisjoint(self._scripts) else _IN
        self[code] = mark
        return mark
