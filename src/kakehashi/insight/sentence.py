"""The cross-attention of one translation, drawn."""

from pathlib import Path

from kakehashi.data.reading import is_blank
from kakehashi.errors import ConfigError, DataError
from kakehashi.inference.translator import Translator
from kakehashi.insight.attention import attention
from kakehashi.insight.heatmap import heatmap, picture_format
from kakehashi.models.interface import alignment_layer


def draw_attention(
    translator: Translator,
    line: str,
    path: str | Path,
    *,
    target: str | None = None,
    layer: int | None = None,
    head: int | None = None,
) -> str:
    """Draw where a model looks while it translates a line; returns what the picture shows.

    Each row stands for the step that writes its piece.

    Args:
        translator: the model.
        line: source text.
        path: the picture, .png, .pdf or .svg.
        target: the translation to follow; None: the model's own.
        layer: decoder layer from 1; None: the last but one, which aligns best in deep Transformers,
            and the last where there are no more than two.
        head: head from 1; None: the mean of all.

    Raises:
        ConfigError: for a layer or a head that the model does not have, or a kind of picture.
        DataError: when the picture cannot be written; for a line without visible characters, and
            one that is longer than the model's training (translated in parts, see ``Translator``).
    """
    picture_format(path)
    _check(translator, line, target)
    shown = attention(translator, line, target)
    maps = shown.maps.cross
    if layer is None:
        layer = alignment_layer(len(maps)) + 1
    if not 1 <= layer <= len(maps):
        raise ConfigError(f"the model has decoder layers 1 to {len(maps)}; there is no {layer}")
    weights = maps[layer - 1][0]
    heads = weights.shape[0]
    if head is not None and not 1 <= head <= heads:
        raise ConfigError(f"layer {layer} has heads 1 to {heads}; there is no {head}")
    chosen = weights.mean(0) if head is None else weights[head - 1]
    which = f"mean of {heads} heads" if head is None else f"head {head} of {heads}"
    if heads == 1:
        which = "one head"
    title = f"cross-attention, layer {layer} of {len(maps)}, {which}"
    source, written = map(_labels, (shown.source, shown.target_output))
    heatmap(chosen.cpu().numpy(), source, written, path, title=title)
    return title


def _check(translator: Translator, line: str, target: str | None) -> None:
    if is_blank(line):
        raise DataError("the text has no visible character: there is nothing to translate")
    pieces, longest = len(translator.tokenizer.encode(line)) + 1, translator.config.max_length
    if target is None and pieces > longest:
        raise DataError(
            f"the text has {pieces:,} pieces, the model was trained on at most {longest:,} and "
            "translates longer text in parts: give one sentence of it, or the translation to follow"
        )


def _labels(pieces: tuple[str, ...]) -> list[str]:
    """Pieces with a small dot for a space, where SentencePiece writes a bar."""
    return [piece.replace("\u2581", "\u00b7") for piece in pieces]
