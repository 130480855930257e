"""The settings of tokenizers: the schema of `tokenizer=...`."""

import re
from dataclasses import dataclass, field

from kakehashi.errors import ConfigError

TOKENIZER_KINDS = ("unigram", "bpe")
NORMALIZATIONS = ("identity", "nfkc")
RESERVED = ("<pad>", "<unk>", "<s>", "</s>")
BYTE_PIECE = re.compile("<0x[0-9A-F]{2}>")
"""How the 256 pieces are written that stand for a byte each."""


@dataclass
class SamplingConfig:
    """Other pieces for the training text in every epoch; nothing else is ever sampled."""

    dropout: float = 0.0
    """BPE-dropout (Provilkov et al., 2020), `kind: bpe`: how likely a merge is to be passed over.
    0: off."""
    alpha: float | None = None
    """Subword regularisation (Kudo, 2018), `kind: unigram`: segmentations are drawn from
    P(x)^alpha. 1 draws from the model, 0 all alike. None: off."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.dropout < 1.0:
            raise ConfigError(
                f"tokenizer.sampling.dropout is {self.dropout}; it is a probability below 1"
            )
        if self.alpha is not None and self.alpha < 0:
            raise ConfigError(
                f"tokenizer.sampling.alpha is {self.alpha}; it must not be negative (null: off)"
            )
        if self.dropout and self.alpha is not None:
            raise ConfigError(
                "tokenizer.sampling has both dropout (for bpe) and alpha (for unigram): "
                "set one of them"
            )

    @property
    def kind(self) -> str | None:
        """The kind of tokenizer that samples so; None without sampling."""
        if self.dropout:
            return "bpe"
        return None if self.alpha is None else "unigram"

    @property
    def setting(self) -> str:
        """What is set, as it is typed."""
        if self.alpha is not None:
            return f"tokenizer.sampling.alpha={self.alpha:g}"
        return f"tokenizer.sampling.dropout={self.dropout:g}"


@dataclass
class TokenizerConfig:
    """A joint SentencePiece model for both languages, trained on the training text."""

    kind: str = "unigram"
    vocab_size: int = 8000
    """Pieces, including the four reserved ones and the 256 bytes."""
    normalization: str = "identity"
    """identity leaves the text alone; nfkc folds full-width letters, ligatures and the like."""
    character_coverage: float = 0.9995
    """The share of characters that get pieces of their own; the rest is spelled in bytes."""
    byte_fallback: bool = True
    symbols: list[str] = field(default_factory=list)
    """Placeholders and markup, such as {name} or <b>: each is one piece wherever it stands."""
    sampling: SamplingConfig = field(default_factory=SamplingConfig)

    def __post_init__(self) -> None:
        if self.kind not in TOKENIZER_KINDS:
            raise ConfigError(
                f"tokenizer.kind is {self.kind!r}; it can be {', '.join(TOKENIZER_KINDS)}"
            )
        if self.normalization not in NORMALIZATIONS:
            raise ConfigError(
                f"tokenizer.normalization is {self.normalization!r}; it can be "
                f"{', '.join(NORMALIZATIONS)}"
            )
        if not 0.9 <= self.character_coverage <= 1.0:
            raise ConfigError(
                f"tokenizer.character_coverage is {self.character_coverage}; "
                "it lies between 0.9 and 1.0"
            )
        if self.sampling.kind not in (None, self.kind):
            raise ConfigError(
                f"{self.sampling.setting} goes with tokenizer.kind={self.sampling.kind}, and "
                f"this is {self.kind}"
            )
        _check_symbols(self.symbols)


def _check_symbols(symbols: list[str]) -> None:
    for symbol in symbols:
        if not symbol or any(c.isspace() or not c.isprintable() or c == "\u2581" for c in symbol):
            raise ConfigError(
                f"tokenizer.symbols: {symbol!r} cannot be a symbol; one has at least one "
                "character, and no spaces, control characters or U+2581"
            )
        if symbol in RESERVED or BYTE_PIECE.fullmatch(symbol):
            raise ConfigError(f"tokenizer.symbols: {symbol!r} is a piece of every tokenizer")
    if len(set(symbols)) < len(symbols):
        twice = next(symbol for symbol in symbols if symbols.count(symbol) > 1)
        raise ConfigError(f"tokenizer.symbols: {twice!r} is there twice")
