"""Words as BLEU counts them."""

from collections.abc import Callable

from sacrebleu.metrics.bleu import BLEU

from kakehashi.evaluation.tokenizers import bleu_tokenizer

Words = Callable[[str], list[str]]
"""The words of a line; punctuation marks are words of their own."""


def words_of(language: str) -> Words:
    """Finds words with the tokenizer that BLEU uses for a language, see ``bleu_tokenizer``."""
    tokenise = BLEU(tokenize=bleu_tokenizer(language)[0]).tokenizer

    def words(line: str) -> list[str]:
        found: list[str] = tokenise(line.rstrip()).split()
        return found

    return words
