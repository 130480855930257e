"""Which language a sentence is surely in, as py3langid identifies it.

The library knows 97 languages by the byte sequences that are typical of them (Lui and Baldwin,
2012, langid.py). It errs on short sentences and on names: of those nothing is said.
"""

import importlib.util
from collections.abc import Callable
from functools import cache

from kakehashi.errors import ConfigError

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


class Identifier:
    """The library's model, with codes of one language taken for the same."""

    def __init__(self) -> None:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        # norm_probs: probabilities that add up to 1, by a temperature that follows the length
        self._model = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        self._known = frozenset(_SAME.get(name, name) for name in self._model.labels)

    def code(self, language: str) -> str:
        """What `identify` calls a language, whatever its region; empty where it isn't known."""
        base = _base(language)
        base = _SAME.get(base, base)
        return base if base in self._known else ""

    def identify(self, text: str) -> str | None:
        """The language that a text is surely in, None where that is only a guess."""
        least = _SHORTEST if text.isascii() else _SHORTEST // 2
        if len(text) < least or sum(map(str.isalpha, text)) < least:
            return None
        name, probability = self._model.classify(text)
        return _SAME.get(name, name) if probability > _SURE else None


@cache
def identifier() -> Identifier:
    """The model, read once."""
    return Identifier()


def other_language(expected: str) -> Callable[[str], bool]:
    """A function that tells whether a text is surely in another language than `expected`.

    Raises ConfigError where the library isn't installed, or doesn't know the language.
    """
    if not installed():
        raise ConfigError(
            "data.filters.language needs the library py3langid: pip install 'kakehashi[check]'"
        )
    model = identifier()
    wanted = model.code(expected)
    if not wanted:
        base = _base(expected)
        raise ConfigError(f"data.filters.language: py3langid does not know the language {base!r}")
    return lambda text: model.identify(text) not in (None, wanted)


def _base(language: str) -> str:
    """A language's code without region and script."""
    return language.replace("_", "-").split("-")[0].lower()
