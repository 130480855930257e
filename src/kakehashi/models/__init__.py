"""The two models and what the rooms above know of them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kakehashi.models.build import build_model
    from kakehashi.models.config import RNNConfig, TransformerConfig
    from kakehashi.models.interface import AttentionMaps, Encoded, TranslationModel
    from kakehashi.models.rnn import RNNSearch
    from kakehashi.models.transformer import Transformer

__all__ = [
    "AttentionMaps",
    "Encoded",
    "RNNConfig",
    "RNNSearch",
    "Transformer",
    "TransformerConfig",
    "TranslationModel",
    "build_model",
]
_ROOMS = {
    "AttentionMaps": "interface",
    "Encoded": "interface",
    "RNNConfig": "config",
    "RNNSearch": "rnn",
    "Transformer": "transformer",
    "TransformerConfig": "config",
    "TranslationModel": "interface",
    "build_model": "build",
}


def __getattr__(name: str) -> Any:
    """Import a model only when somebody asks for it: a description of one needs no torch."""
    if name in _ROOMS:
        return getattr(import_module(f"kakehashi.models.{_ROOMS[name]}"), name)
    raise AttributeError(f"module 'kakehashi.models' has no attribute {name!r}")
