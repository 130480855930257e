"""The libraries that are needed for one format each, and how to come by them."""

from typing import Any

from kakehashi.errors import ConfigError


def ctranslate2() -> Any:
    """The package, which ships no types. Raises ConfigError, with pip's words, without it."""
    try:
        import ctranslate2 as package
    except ImportError as error:
        raise ConfigError(
            f"CTranslate2 cannot be imported ({error}): pip install 'kakehashi[ctranslate2]'"
        ) from error
    return package


def transformers() -> Any:
    """The package. Raises ConfigError, with pip's words, without it."""
    try:
        import transformers as package
    except ImportError as error:
        raise ConfigError(
            f"transformers cannot be imported ({error}): pip install 'kakehashi[huggingface]'"
        ) from error
    return package
