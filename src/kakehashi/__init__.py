"""Kakehashi: train translation models from a parallel corpus, measure them, see them attend."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kakehashi.inference.options import Options
    from kakehashi.inference.request import Request
    from kakehashi.inference.translator import Translator

__version__ = "0.1.0"
__all__ = ["Options", "Request", "Translator", "__version__"]
_ROOMS = {"Options": "options", "Request": "request", "Translator": "translator"}


def __getattr__(name: str) -> Any:
    """Import the translator and what goes with it only when somebody asks for them."""
    if name in _ROOMS:
        return getattr(import_module(f"kakehashi.inference.{_ROOMS[name]}"), name)
    raise AttributeError(f"module 'kakehashi' has no attribute {name!r}")
