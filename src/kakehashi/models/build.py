"""From a description to a model."""

from typing import Any

from kakehashi.models.config import ModelConfig, TransformerConfig
from kakehashi.models.interface import TranslationModel
from kakehashi.models.rnn import RNNSearch
from kakehashi.models.transformer import Transformer


def build_model(config: ModelConfig, vocab_size: int) -> TranslationModel[Any]:
    """A freshly initialised model (torch's global generator decides the numbers)."""
    if isinstance(config, TransformerConfig):
        return Transformer(config, vocab_size)
    return RNNSearch(config, vocab_size)
