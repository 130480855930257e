"""Scenes as the JSON that the viewer's script reads.

A weight w is stored as the whole number nearest to 65535 w in two bytes, little end first, so that
what is read back is off by at most half of 1/65535, 7.7e-6. The numbers of a scene's maps stand in
a row, in base64: of the encoder by layer, head, row and column; of the decoder's steps by step,
layer, head and column.
"""

import base64
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kakehashi.insight.explorer.labels import Label
from kakehashi.insight.explorer.scene import Path, Scene, directions

LEVELS = 65535
ERROR = 0.5 / LEVELS
"""The most by which a stored weight differs from the tensor's."""


def payload(scenes: Sequence[Scene]) -> dict[str, Any]:
    """Plain lists, numbers and strings for some scenes."""
    return {"scenes": [_scene(shown) for shown in scenes]}


def embedded(scenes: Sequence[Scene]) -> str:
    """The JSON for an HTML `script` element, in ASCII: no text ends it or begins another."""
    text = json.dumps(payload(scenes), separators=(",", ":"))
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def _scene(shown: Scene) -> dict[str, Any]:
    source_direction, target_directions = directions(shown)
    cross, decoder = shown.steps[0].cross, shown.steps[0].decoder
    return {
        "model": shown.model,
        "from": shown.source_language,
        "to": shown.target_language,
        "line": shown.line,
        "direction": source_direction,
        "source": [_label(label) for label in shown.source],
        "encoder": _maps(shown.encoder, shown.encoder),
        "cross": _maps(cross, (one for step in shown.steps for one in step.cross)),
        "decoder": _maps(decoder, (one for step in shown.steps for one in step.decoder)),
        "candidates": [
            [[*_label(label), round(probability, 5)] for label, probability in step.candidates]
            for step in shown.steps
        ],
        "paths": [
            _path(path, towards)
            for path, towards in zip(shown.paths, target_directions, strict=True)
        ],
        "beam": [
            [
                [*_label(slot.label), slot.parent, round(slot.log_probability, 4), slot.step]
                for slot in slots
            ]
            for slots in shown.beam
        ],
        "first": {"layer": shown.layer, "head": shown.head},
    }


def _path(path: Path, towards: str) -> dict[str, Any]:
    return {
        "text": path.text,
        "direction": towards,
        "steps": path.steps,
        "output": [_label(label) for label in path.output],
        "probabilities": [round(probability, 5) for probability in path.probabilities],
        "logProbability": round(path.log_probability, 4),
        "score": None if path.score is None else round(path.score, 4),
        "finished": path.finished,
    }


def _label(label: Label) -> list[str | int]:
    """Its text; 1 for a space before it, 2 for none of the text's."""
    return [label.text, label.spaced + 2 * label.control]


def _maps(shape: Sequence[Tensor], weights: Iterable[Tensor]) -> dict[str, Any] | None:
    if not shape:
        return None
    numbers = torch.cat([one.flatten() for one in weights]).double().clamp(0, 1) * LEVELS
    content = numbers.round().numpy().astype(np.dtype("<u2")).tobytes()
    data = base64.b64encode(content).decode("ascii")
    return {"layers": len(shape), "heads": shape[0].shape[0], "data": data}
