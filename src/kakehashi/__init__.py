"""Kakehashi: train translation models from a parallel corpus, measure them, see them attend."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kakehashi.inference.translator import Translator

__version__ = "0.1.0"
__all__ = ["Translator", "__version__"]


def __getattr__(name: str) -> Any:
    """Import the translator (and with it torch) only when somebody asks for it."""
    if name == "Translator":
        from kakehashi.inference.translator import Translator

        return Translator
    raise AttributeError(f"module 'kakehashi' has no attribute {name!r}")
