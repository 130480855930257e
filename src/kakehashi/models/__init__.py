"""The two models and what the rooms above know of them."""

from kakehashi.models.build import build_model
from kakehashi.models.config import (
    ModelConfig,
    RNNConfig,
    ScoreConfig,
    TransformerConfig,
    model_config,
    model_settings,
)
from kakehashi.models.interface import AttentionMaps, Encoded, TranslationModel

__all__ = [
    "AttentionMaps",
    "Encoded",
    "ModelConfig",
    "RNNConfig",
    "ScoreConfig",
    "TransformerConfig",
    "TranslationModel",
    "build_model",
    "model_config",
    "model_settings",
]
