"""What a finished model is, and using it."""

from kakehashi.inference.bundle import Bundle, load_bundle
from kakehashi.inference.save import save_bundle
from kakehashi.inference.settings import BundleConfig
from kakehashi.inference.translator import Translation, Translator

__all__ = [
    "Bundle",
    "BundleConfig",
    "Translation",
    "Translator",
    "load_bundle",
    "save_bundle",
]
