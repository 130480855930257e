"""The attention of one translation, or of several, drawn."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from torch import Tensor

from kakehashi.errors import ConfigError
from kakehashi.inference.alignment import shifted
from kakehashi.inference.translator import Translator
from kakehashi.insight.attention import Attention, attention, check_line
from kakehashi.insight.heatmap import Panel, heatmaps, picture_format
from kakehashi.insight.words import Words, join, words_of

Kind = Literal["cross", "encoder", "decoder"]
NAMES: dict[Kind, str] = {
    "cross": "cross-attention",
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
}


def draw_attention(
    translator: Translator,
    lines: str | Sequence[str],
    paths: str | Path | Sequence[str | Path],
    *,
    targets: str | Sequence[str] | None = None,
    kind: Kind = "cross",
    layer: int | None = None,
    head: int | Literal["all", "mean"] | None = None,
    words: bool = False,
) -> str:
    """Draw where a model looks while it translates; returns what the picture shows.

    Of cross-attention, each row stands for the step that writes its piece (where neither layer nor
    head is given, for the step that the model's ``alignment`` names); of self-attention, for the
    place that reads it.

    Args:
        translator: the model.
        lines: source text; several lines make several panels.
        paths: the picture, .png, .pdf or .svg; several for the same in several formats.
        targets: the translations to follow, one for each line; None: the model's own.
        kind: whose attention: the decoder's to the source, or to itself, or the encoder's.
        layer: from 1; None: of cross-attention that of the model's ``alignment``, else the last.
        head: from 1; "mean": of all; "all": a panel for each; None: the mean, and of
            cross-attention with no layer either what the model's ``alignment`` names.
        words: join the pieces of a word.

    Raises:
        ConfigError: for attention, a layer or a head that the model does not have, a kind of
            picture, and for more or fewer targets than lines.
        DataError: when a picture cannot be written; for a line without visible characters, and one
            that is longer than the model's training (translated in parts, see ``Translator``).
    """
    lines = [lines] if isinstance(lines, str) else list(lines)
    paths = [paths] if isinstance(paths, str | Path) else list(paths)
    targets = [targets] if isinstance(targets, str) else targets
    if targets is not None and len(targets) != len(lines):
        raise ConfigError(f"{len(lines)} sentences and {len(targets)} translations of them")
    for path in paths:
        picture_format(path)
    panels: list[Panel] = []
    shown = ""
    for number, line in enumerate(lines):
        target = None if targets is None else targets[number]
        check_line(translator, line, target)
        found = attention(translator, line, target)
        weights, shown = _chosen(found, kind, layer, head)
        rows, columns = _labels(translator, found, kind, words)
        letter = f"({_letters(number)})" if len(lines) > 1 else ""
        for place, one in enumerate(weights, 1):
            name = f"head {place}" if head == "all" and len(weights) > 1 else ""
            joined = join(one, rows, columns)
            panels.append(Panel(joined, rows.labels, columns.labels, f"{letter} {name}".strip()))
    heads = len(panels) // len(lines)
    heatmaps(panels, paths, title=shown, across=heads if min(heads, len(lines)) > 1 else None)
    return shown


def _chosen(
    found: Attention, kind: Kind, layer: int | None, head: int | Literal["all", "mean"] | None
) -> tuple[list[npt.NDArray[np.float32]], str]:
    """The maps [N M] that are asked for, and what they are."""
    maps: list[Tensor] = getattr(found.maps, kind)
    name = NAMES[kind]
    if not maps:
        raise ConfigError(f"the model has no {name}: it reads and writes with recurrent layers")
    shift = 0
    if layer is None and kind == "cross":
        layer = found.alignment.layer
        if head is None:
            head, shift = found.alignment.head, found.alignment.shift
    elif layer is None:
        layer = len(maps)
    if not 1 <= layer <= len(maps):
        raise ConfigError(f"the model's {name} has layers 1 to {len(maps)}; there is no {layer}")
    weights = maps[layer - 1][0]
    heads = len(weights)
    if isinstance(head, int) and not 1 <= head <= heads:
        raise ConfigError(f"layer {layer} has heads 1 to {heads}; there is no {head}")
    where = f"{name}, layer {layer} of {len(maps)}"
    read = ", as each piece is read" if shift else ""
    if heads == 1:
        shown, which = weights, "one head"
    elif head == "all":
        shown, which = weights, f"all {heads} heads"
    elif head is None or head == "mean":
        shown, which = weights.mean(0, keepdim=True), f"mean of {heads} heads"
    else:
        shown, which = weights[head - 1 : head], f"head {head} of {heads}"
    return [shifted(one.float().cpu().numpy(), shift) for one in shown], f"{where}, {which}{read}"


def _labels(
    translator: Translator, found: Attention, kind: Kind, words: bool
) -> tuple[Words, Words]:
    """What the rows and the columns stand for."""
    source = _named(translator, found.source[:-1], words).with_ends(None, found.source[-1])
    if kind == "encoder":
        return source, source
    target = _named(translator, found.target_output[:-1], words)
    if kind == "cross":
        return target.with_ends(None, found.target_output[-1]), source
    read = target.with_ends(found.target_input[0], None)
    return read, read


def _named(translator: Translator, pieces: tuple[str, ...], words: bool) -> Words:
    """Words, or pieces, with a small dot for a space where SentencePiece writes a bar."""
    if not words or not pieces:
        names = tuple(piece.replace("\u2581", "\u00b7") for piece in pieces)
        return Words(names, tuple(range(len(names))))
    tokenizer = translator.tokenizer
    numbers = tokenizer.numbers(pieces)
    return words_of(tokenizer.decode(numbers), tokenizer.decode_spans(numbers))


def _letters(number: int) -> str:
    """a, b, ... z, 27, 28 ...: the name of a panel."""
    return chr(ord("a") + number) if number < 26 else str(number + 1)
