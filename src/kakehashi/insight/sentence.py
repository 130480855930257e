"""The cross-attention of one translation, drawn."""

from pathlib import Path

from kakehashi.data.reading import is_blank
from kakehashi.errors import DataError
from kakehashi.inference.alignment import shifted
from kakehashi.inference.torch_engine import TorchEngine
from kakehashi.inference.translator import Translator
from kakehashi.insight.attention import attention
from kakehashi.insight.heatmap import heatmap, picture_format
from kakehashi.models.alignment import AlignmentChoice
from kakehashi.models.interface import chosen_weights


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

    Each row stands for the step that writes its piece; where neither layer nor head is given, for
    the step that the model's ``alignment`` names.

    Args:
        translator: the model.
        line: source text.
        path: the picture, .png, .pdf or .svg.
        target: the translation to follow; None: the model's own.
        layer: decoder layer from 1; None: that of the model's ``alignment``.
        head: head from 1; None: the mean of all, and with no layer either the model's choice.

    Raises:
        ConfigError: for a layer or a head that the model does not have, or a kind of picture.
        DataError: when the picture cannot be written; for a line without visible characters, and
            one that is longer than the model's training (translated in parts, see ``Translator``).
    """
    picture_format(path)
    _check(translator, line, target)
    shown = attention(translator, line, target)
    maps = shown.maps.cross
    assert isinstance(translator.engine, TorchEngine)  # no other shows how it attends
    choice = translator.engine.model.alignment
    if (layer, head) != (None, None):
        choice = AlignmentChoice(choice.layer if layer is None else layer, head)
    heads = maps[-1].shape[1]
    choice.check(len(maps), heads)
    weights = shifted(chosen_weights(maps, choice)[0].float().cpu().numpy(), choice.shift)
    which = f"mean of {heads} heads" if choice.head is None else f"head {choice.head} of {heads}"
    if heads == 1:
        which = "one head"
    if choice.shift:
        which += ", as each piece is read"
    title = f"cross-attention, layer {choice.layer} of {len(maps)}, {which}"
    source, written = map(_labels, (shown.source, shown.target_output))
    heatmap(weights, source, written, path, title=title)
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
