"""How good translations are: corpus scores with what is needed to place and compare them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kakehashi.evaluation.metrics import Metric
    from kakehashi.evaluation.scores import (
        Difference,
        Evaluation,
        Score,
        Scores,
        corpus_bleu,
        corpus_scores,
        evaluate,
    )
    from kakehashi.evaluation.tokenizers import bleu_tokenizer

__all__ = [
    "Difference",
    "Evaluation",
    "Metric",
    "Score",
    "Scores",
    "bleu_tokenizer",
    "corpus_bleu",
    "corpus_scores",
    "evaluate",
]


def __getattr__(name: str) -> Any:
    """Import the scores only when somebody asks for them: word links need no sacreBLEU."""
    if name in __all__:
        room = {"Metric": "metrics", "bleu_tokenizer": "tokenizers"}.get(name, "scores")
        return getattr(import_module(f"kakehashi.evaluation.{room}"), name)
    raise AttributeError(f"module 'kakehashi.evaluation' has no attribute {name!r}")
