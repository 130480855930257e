"""Validation: what the model gives the true translations, and what it says itself."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from kakehashi.data.batching import Batch
from kakehashi.decoding.config import DecodingConfig
from kakehashi.decoding.methods import Beam
from kakehashi.decoding.search import search
from kakehashi.evaluation.scores import corpus_bleu
from kakehashi.models.interface import TranslationModel
from kakehashi.training.objective import cross_entropy

LOWEST = -1e30
"""The rank of a model whose nll is no number: finite, so that any model is better than none."""


@dataclass(frozen=True)
class Validated:
    """How a model does on the validation pairs."""

    nll: float
    """-log p of a target token in nats, mean over all of them (EOS included)."""
    bleu: float
    """Of detokenised translations against the raw references."""

    @property
    def rank(self) -> float:
        """What validations are compared by: BLEU, and as long as that is 0, minus nll.

        Early in a hard corpus no translation shares four words in a row with its reference, and
        the first of many models without a BLEU would pass for the best.
        """
        if self.bleu > 0:
            return self.bleu
        return max(-self.nll, LOWEST) if math.isfinite(self.nll) else LOWEST


@dataclass
class Tally:
    """What has been gathered of a validation so far; what comes twice counts once."""

    nll: dict[int, tuple[float, int]] = field(default_factory=dict)
    """Of each batch, by its first pair: the sum over its tokens, and how many they are."""
    translations: dict[int, str] = field(default_factory=dict)


class Validator:
    """Scores batches of validation pairs.

    Args:
        references: the raw target side; a batch's index points into it.
        decode: from ids to text.
        target_language: decides BLEU's tokenizer.
        decoding: the search; a beam of 1 is several times faster than one of 5.
        chunk: tokens projected to the vocabulary at once.
    """

    def __init__(
        self,
        references: Sequence[str],
        decode: Callable[[Sequence[int]], str],
        target_language: str,
        decoding: DecodingConfig,
        chunk: int = 256,
    ) -> None:
        self.references = references
        self.decode = decode
        self.target_language = target_language
        self.decoding = decoding
        self.chunk = chunk

    @torch.no_grad()
    def visit(self, model: TranslationModel[Any], batch: Batch, tally: Tally) -> None:
        """Add one batch to the tally; the model is in evaluation mode."""
        allowed = batch.source_allowed
        features = model.features(batch.source, allowed, batch.target_input)
        real = batch.target_allowed
        loss = cross_entropy(
            features[real],
            model.output.weight,
            model.output.silence,
            batch.target_output[real],
            chunk=self.chunk,
        )
        tokens = batch.n_target_tokens
        tally.nll[int(batch.index[0])] = loss.nll.item() * tokens, tokens
        for start in range(0, len(batch.index), self.decoding.batch_size):
            rows = slice(start, start + self.decoding.batch_size)
            texts = self._translate(model, batch.source[rows], allowed[rows])
            tally.translations.update(zip(batch.index[rows].tolist(), texts, strict=True))

    def _translate(
        self, model: TranslationModel[Any], source: torch.Tensor, allowed: torch.Tensor
    ) -> list[str]:
        encoded = model.encode(source, allowed)
        found = search(model, encoded, config=self.decoding, method=Beam(scored=False))
        return [self.decode(best[0].ids) for best in found]

    def result(self, tallies: Sequence[Tally]) -> Validated:
        """The scores of all pairs in the tallies (of several processes, perhaps).

        Exactly the same however the batches were dealt out to processes.
        """
        translations: dict[int, str] = {}
        for tally in tallies:
            translations.update(tally.translations)
        order = sorted(translations)
        bleu = corpus_bleu(
            [translations[i] for i in order],
            [self.references[i] for i in order],
            self.target_language,
        )
        batches = {first: sums for tally in tallies for first, sums in tally.nll.items()}
        # rounded once, at the end: an ordinary sum depends on the order
        nll = math.fsum(nll for nll, _ in batches.values())
        return Validated(nll / sum(tokens for _, tokens in batches.values()), bleu)

    def run(self, model: TranslationModel[Any], batches: Sequence[Batch]) -> Validated:
        """Validate outside of a training loop."""
        device = next(model.parameters()).device
        training = model.training
        model.eval()
        tally = Tally()
        try:
            for batch in batches:
                self.visit(model, batch.to(device), tally)
        finally:
            model.train(training)
        return self.result([tally])
