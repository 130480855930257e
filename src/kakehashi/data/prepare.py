"""The tokenizer of a corpus: trained on its training text once, then found again."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from itertools import chain
from pathlib import Path

from kakehashi.data.corpora.base import Corpus
from kakehashi.data.normalisation import NormalisationEffect, normalisation_effect
from kakehashi.data.notes import note
from kakehashi.data.reading import expand
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.data.tokenizer_config import TokenizerConfig

MAX_TRAINING_LINES = 100_000
"""Of each language; from a larger corpus so many are taken at even distances. SentencePiece holds
them all in memory and works on them with one thread, and more of them change few pieces."""


def prepare_tokenizer(config: TokenizerConfig, corpus: Corpus, root: str | Path) -> Tokenizer:
    """The tokenizer trained on the corpus's training text, both sides together.

    It is kept in `root`/cache under the hash of the text, the settings and SentencePiece's
    version; the same ones give the same bytes. Raises TokenizerError when the text doesn't allow
    the vocabulary's size (nothing is written then), or when the kept file is damaged.
    """
    model_settings = asdict(config)
    del model_settings["sampling"]  # it happens in training, with the same model
    settings = json.dumps(model_settings, sort_keys=True)
    content = f"{version('sentencepiece')} {settings} {corpus.train.digest()}"
    key = hashlib.sha256(content.encode()).hexdigest()[:24]
    path = expand(root) / "cache" / f"tokenizer-{key}.model"
    if path.exists():
        return Tokenizer.load(path)
    note(f"Training the tokenizer: {config.kind}, {config.vocab_size:,} pieces")
    tokenizer = Tokenizer.train(
        chain(_sample(corpus.train.source), _sample(corpus.train.target)),
        vocab_size=config.vocab_size,
        kind=config.kind,
        normalization=config.normalization,
        character_coverage=config.character_coverage,
        byte_fallback=config.byte_fallback,
        symbols=config.symbols,
    )
    tokenizer.save(path)
    return tokenizer


def show_normalisation(tokenizer: Tokenizer, corpus: Corpus) -> NormalisationEffect:
    """What the tokenizer's normalisation changes in the training text, told on standard error."""
    effect = normalisation_effect(
        tokenizer.settings.normalization,
        chain(corpus.train.source, corpus.train.target),
        tokenizer.normalise,
    )
    if effect.name != "identity":
        note(effect.report())
    return effect


def show_symbols(tokenizer: Tokenizer, corpus: Corpus) -> None:
    """Tell on standard error of user-defined symbols that no training pair has on both sides."""
    train = corpus.train
    for symbol in tokenizer.settings.symbols:
        pairs = zip(train.source, train.target, strict=True)
        if not any(symbol in source and symbol in target for source, target in pairs):
            note(
                f"tokenizer.symbols: no training pair has {symbol} on both sides; only from such "
                "pairs does a model learn to keep it"
            )


def _sample(lines: Sequence[str]) -> Sequence[str]:
    if len(lines) <= MAX_TRAINING_LINES:
        return lines
    n = len(lines)
    return [lines[i * n // MAX_TRAINING_LINES] for i in range(MAX_TRAINING_LINES)]
