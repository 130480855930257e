"""Whether a sentence is in another language than it should be, as py3langid identifies it.

The library knows 97 languages by the byte sequences that are typical of them (Lui and Baldwin,
2012, langid.py). It errs on short sentences and on names: those are taken for what they should be.
"""

import importlib.util
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from kakehashi.errors import ConfigError

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

_SURE = 0.9
_SHORTEST = 20
"""Letters without which a language is no more than a guess; half of it in scripts whose characters
say more than one of ASCII."""
_SAME = {"nb": "no", "nn": "no", "iw": "he", "in": "id", "fil": "tl", "cmn": "zh"} | dict.fromkeys(
    ("hr", "bs", "sr"), "sh"
)
"""Codes that mean, or cannot be told from, another one."""


def installed() -> bool:
    """Whether the library is there."""
    return importlib.util.find_spec("py3langid") is not None


def other_language(expected: str) -> Callable[[str], bool]:
    """A function that tells whether a text is surely in another language than `expected`.

    Raises ConfigError where the library isn't installed, or doesn't know the language.
    """
    if not installed():
        raise ConfigError(
            "data.filters.language needs the library py3langid: pip install 'kakehashi[check]'"
        )
    model = _identifier()
    base = expected.replace("_", "-").split("-")[0].lower()
    wanted = _SAME.get(base, base)
    if wanted not in {_SAME.get(name, name) for name in model.labels}:
        raise ConfigError(f"data.filters.language: py3langid does not know the language {base!r}")

    def other(text: str) -> bool:
        least = _SHORTEST if text.isascii() else _SHORTEST // 2
        if len(text) < least or sum(map(str.isalpha, text)) < least:
            return False
        name, probability = model.classify(text)
        return bool(probability > _SURE) and _SAME.get(name, name) != wanted

    return other


@cache
def _identifier() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    # norm_probs: probabilities that add up to 1
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
