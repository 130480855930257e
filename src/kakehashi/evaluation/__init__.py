"""How good translations are: corpus scores with what is needed to place and compare them."""

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
