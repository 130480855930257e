"""Search for a translation through the decoder contract of ``models.interface`` only."""

from kakehashi.decoding.beam import beam_search
from kakehashi.decoding.config import DecodingConfig, decoding_config, decoding_settings
from kakehashi.decoding.greedy import greedy_search
from kakehashi.decoding.hypothesis import Hypothesis, max_lengths

__all__ = [
    "DecodingConfig",
    "Hypothesis",
    "beam_search",
    "decoding_config",
    "decoding_settings",
    "greedy_search",
    "max_lengths",
]
