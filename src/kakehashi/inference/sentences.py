"""Where the sentences of a text end, and what stands between their translations.

The ends are found by sentencex, which knows abbreviations, quotations and the stops of many
languages. What it is given is the text with every white space but the ASCII ones made a plain
space, one for one: it counts bytes where it should count characters, and panics at others.
"""

import re

from kakehashi.data.reading import is_blank
from kakehashi.inference.translation import one_line

WITHOUT_SPACES = frozenset(("zh", "zho", "cmn", "yue", "ja", "jpn", "th", "tha", "lo", "km", "my"))
"""Languages that put no space between words or sentences."""
_WIDE_SPACE = re.compile("[^\\S\x00-\x7f]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def main_language(code: str) -> str:
    """The language of a tag without script and region: ``zh`` of ``zh-Hans``."""
    return re.split(r"[-_]", code.lower())[0]


def sentences(text: str, language: str) -> list[str]:
    """The sentences of a text, each with the white space after it; joined they are the text.

    Each has something to be seen, unless the whole text has not.

    Args:
        text: any text.
        language: code of its language; of one that sentencex does not know, English stops count.
    """
    from sentencex import segment

    plain = _SURROGATE.sub("\ufffd", _WIDE_SPACE.sub(" ", text))
    found: list[str] = []
    start = 0
    for sentence in segment(main_language(language), plain):
        end = start + len(sentence)
        if found and (is_blank(text[start:end]) or is_blank(found[-1])):
            found[-1] += text[start:end]
        else:
            found.append(text[start:end])
        start = end
    return found


def without_spaces(language: str) -> bool:
    """Whether a language puts no space between words."""
    return main_language(language) in WITHOUT_SPACES


def joint(space: str, language: str) -> str:
    """What stands between the translations of two sentences.

    Args:
        space: the white space between them in the source.
        language: that of the translations. Where it puts a space between sentences there is one;
            where it does not, a single space goes, and what says more (a tab, several spaces)
            stays. A line break becomes a space: a translation is one line.
    """
    if without_spaces(language):
        return "" if space == " " else one_line(space)
    return one_line(space) or " "
