"""What a finished model is, and using it."""

from kakehashi.inference.bundle import Bundle, load_bundle
from kakehashi.inference.save import save_bundle
from kakehashi.inference.settings import BundleConfig
from kakehashi.inference.translation import Translation
from kakehashi.inference.translator import Translator

__all__ = [
    "Bundle",
    "BundleConfig",
    "Translation",
    "Translator",
    "load_bundle",
    "save_bundle",
]
