"""How a model attends while it writes one translation."""

from dataclasses import dataclass

from kakehashi.data.reading import is_blank
from kakehashi.errors import ConfigError, DataError
from kakehashi.inference.torch_engine import TorchEngine
from kakehashi.inference.translator import Translator
from kakehashi.models.alignment import AlignmentChoice
from kakehashi.models.interface import AttentionMaps
from kakehashi.symbols import BOS, EOS


@dataclass(frozen=True)
class Attention:
    """Every attention weight, and what its rows and columns stand for."""

    maps: AttentionMaps
    """Of one sentence: B = 1. Row n is the step that reads ``target_input[n]`` and writes
    ``target_output[n]``."""
    source: tuple[str, ...]
    """Pieces of the line, EOS last."""
    target_input: tuple[str, ...]
    """BOS, then the pieces of the translation."""
    target_output: tuple[str, ...]
    """The pieces of the translation, EOS last."""
    alignment: AlignmentChoice
    """Which of the cross-attention the model's alignments are read off."""


def attention(translator: Translator, line: str, target: str | None = None) -> Attention:
    """Every attention weight while the model reads ``line`` and writes ``target``.

    Args:
        translator: the model, on the torch engine.
        line: source text.
        target: the translation to follow; None: the model's own, by its default search.

    Raises:
        ConfigError: for another engine, which keeps its weights to itself.
    """
    engine, tokenizer = translator.engine, translator.tokenizer
    if not isinstance(engine, TorchEngine):
        raise ConfigError(f"the {engine.name} engine does not show how it attends; torch does")
    row = tokenizer.encode(line)
    if target is None:
        found = engine.search([row], config=translator.config.decoding)
        ids = list(found[0][0].ids)
    else:
        ids = tokenizer.encode(target)
    return Attention(
        engine.maps(row, ids),
        tuple(tokenizer.pieces([*row, EOS])),
        tuple(tokenizer.pieces([BOS, *ids])),
        tuple(tokenizer.pieces([*ids, EOS])),
        engine.model.alignment,
    )


def check_line(translator: Translator, line: str, target: str | None) -> None:
    """A line that can be shown: one with visible characters that is read in one piece.

    Raises:
        DataError: for another one.
    """
    if is_blank(line):
        raise DataError("the text has no visible character: there is nothing to translate")
    pieces, longest = len(translator.tokenizer.encode(line)) + 1, translator.config.max_length
    if target is None and pieces > longest:
        raise DataError(
            f"the text has {pieces:,} pieces, the model was trained on at most {longest:,} and "
            "translates longer text in parts: give one sentence of it, or the translation to follow"
        )
