"""The greatest of many numbers, in an order that draws do not leave open."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

COLUMNS = 64
"""A power of two, for which ``amax`` over lines runs at the speed of memory."""

LINE = 128
"""Numbers among which the greatest is looked for once it is known that it stands there."""


def greatest(scores: Float[Tensor, "rows V"]) -> Int[Tensor, " rows"]:
    """The place of each row's greatest number, of equals the first: a faster ``argmax``.

    A row is read in lines, whose maxima run at the speed of memory; then the best line is looked
    through, or the rest that fills no line.
    """
    lines = scores.shape[-1] // LINE
    if lines < 2:
        return scores.argmax(dim=-1)
    table = scores[:, : lines * LINE].unflatten(-1, (lines, LINE))
    best = torch.cat([table.amax(dim=-1), scores[:, lines * LINE :]], dim=-1).argmax(dim=-1)
    # A place of the rest stands beyond the last line: the last LINE numbers hold all of it.
    start = (best * LINE).clamp(max=scores.shape[-1] - LINE)
    index = start.unsqueeze(1) + torch.arange(LINE, device=scores.device)
    return start + scores.gather(-1, index).argmax(dim=-1)


def stable_top(
    scores: Float[Tensor, "*rows V"], k: int
) -> tuple[Float[Tensor, "*rows k"], Int[Tensor, "*rows k"]]:
    """The k greatest of each row (all, if there are fewer) and their places, greatest first.

    Of equals the first: ``Tensor.topk`` leaves their order open, so rows with a draw at the border
    of the k are settled by a stable sort.
    """
    k = min(k, scores.shape[-1])
    if scores.device.type == "cpu" and k < COLUMNS <= scores.shape[-1] // (2 * (k + 1)):
        values, places, drawn = _greatest_by_columns(scores, k)
    else:
        values, places = scores.topk(min(k + 1, scores.shape[-1]))
        drawn = _draw(values, k)
        values, places = values[..., :k], places[..., :k]
    if bool(drawn.any()):
        ordered, order = scores[drawn].sort(dim=-1, descending=True, stable=True)
        values[drawn], places[drawn] = ordered[..., :k], order[..., :k]
    places, order = places.sort(dim=-1)
    values, order = values.gather(-1, order).sort(dim=-1, descending=True, stable=True)
    return values, places.gather(-1, order)


def _draw(values: Float[Tensor, "*rows n"], k: int) -> Bool[Tensor, "*rows"]:
    """Rows of ordered values whose first k are not certain: the next one is as great."""
    if values.shape[-1] <= k:
        return torch.zeros_like(values[..., 0], dtype=torch.bool)
    return values[..., k - 1] == values[..., k]


def _greatest_by_columns(
    scores: Float[Tensor, "*rows V"], k: int
) -> tuple[Float[Tensor, "*rows k"], Int[Tensor, "*rows k"], Bool[Tensor, "*rows"]]:
    """``scores.topk(k)``, and in which rows a draw leaves it open, in a third of the time.

    A row is read as a table of ``COLUMNS`` columns: the k greatest stand in the k columns (and the
    rest that fills no line of the table) of greatest maximum.
    """
    lines = scores.shape[-1] // COLUMNS
    table = scores[..., : lines * COLUMNS].unflatten(-1, (lines, COLUMNS))
    greatest, column = table.amax(dim=-2).topk(k + 1)
    index = column[..., None, :k].expand(*column.shape[:-1], lines, k)
    rest = scores[..., lines * COLUMNS :]
    candidates = torch.cat([table.gather(-1, index).flatten(-2), rest], dim=-1)
    values, place = candidates.topk(k + 1)
    drawn = _draw(greatest, k) | _draw(values, k)
    place = place[..., :k]
    line, chosen = place // k, column.gather(-1, place % k)
    places = torch.where(place < lines * k, line * COLUMNS + chosen, place + lines * (COLUMNS - k))
    return values[..., :k], places, drawn


def best_of_rows(
    scores: Float[Tensor, "B R V"], k: int
) -> tuple[Int[Tensor, "B k"], Int[Tensor, "B k"]]:
    """Rows and pieces of the k greatest of each sentence's R x V, greatest first.

    Of equals those of the first row, and then the first piece.
    """
    values, pieces = stable_top(scores, k)
    per_row = values.shape[-1]
    order = values.flatten(1).sort(dim=1, descending=True, stable=True).indices[:, :k]
    return order // per_row, pieces.flatten(1).gather(1, order)
