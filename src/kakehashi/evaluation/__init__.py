"""How good translations are: corpus scores with what is needed to place and compare them."""

from kakehashi.evaluation.metrics import Score, Scores, bleu_tokenizer, corpus_scores

__all__ = ["Score", "Scores", "bleu_tokenizer", "corpus_scores"]
