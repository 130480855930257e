"""The engines that a command can be told to compute with."""

from enum import StrEnum


class EngineName(StrEnum):
    """What a model runs on."""

    torch = "torch"
    ctranslate2 = "ctranslate2"


ENGINE_HELP = "ctranslate2: a Transformer once it has been exported, several times faster on a CPU."
