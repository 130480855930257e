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

    Of equals the first.
    """
    rows = scores.flatten(0, -2)
    values, _, places = best_of_rows(rows.unsqueeze(1), k)
    shape = (*scores.shape[:-1], values.shape[-1])
    return values.view(shape), places.view(shape)


def best_of_rows(
    scores: Float[Tensor, "B R V"], k: int, start: Float[Tensor, "B R"] | None = None
) -> tuple[Float[Tensor, "B k"], Int[Tensor, "B k"], Int[Tensor, "B k"]]:
    """The k greatest of each sentence's R x V (all, if there are fewer), greatest first.

    Of equals those of the first row, and then the first piece: ``Tensor.topk`` leaves their order
    open, so sentences with a draw at the border of the k are settled by a stable sort.

    Args:
        scores: of each row's pieces.
        k: how many.
        start: what is added to all numbers of a row; None adds nothing.

    Returns:
        The numbers, their rows and their pieces.
    """
    rows, width = scores.shape[1:]
    k = min(k, rows * width)
    if scores.device.type == "cpu" and k < COLUMNS <= width // (2 * (k + 1)):
        values, places, drawn = _greatest_by_columns(scores, k, start)
    else:
        every = _added(scores, start).flatten(1)
        values, places = every.topk(min(k + 1, every.shape[-1]))
        drawn = _draw(values, k)
        values, places = values[:, :k], places[:, :k]
    if bool(drawn.any()):
        every = _added(scores[drawn], None if start is None else start[drawn]).flatten(1)
        ordered, order = every.sort(dim=-1, descending=True, stable=True)
        values[drawn], places[drawn] = ordered[:, :k], order[:, :k]
    places, order = places.sort(dim=-1)
    values, order = values.gather(-1, order).sort(dim=-1, descending=True, stable=True)
    places = places.gather(-1, order)
    return values, places // width, places % width


def _added(
    scores: Float[Tensor, "B R n"], start: Float[Tensor, "B R"] | None
) -> Float[Tensor, "B R n"]:
    return scores if start is None else scores + start.unsqueeze(-1)


def _draw(values: Float[Tensor, "B n"], k: int) -> Bool[Tensor, " B"]:
    """Rows of ordered values whose first k are not certain: the next one is as great."""
    if values.shape[-1] <= k:
        return torch.zeros_like(values[..., 0], dtype=torch.bool)
    return values[..., k - 1] == values[..., k]


def _greatest_by_columns(
    scores: Float[Tensor, "B R V"], k: int, start: Float[Tensor, "B R"] | None
) -> tuple[Float[Tensor, "B k"], Int[Tensor, "B k"], Bool[Tensor, " B"]]:
    """The k greatest, their places in R x V, and for which sentences a draw leaves them open.

    In less than half the time of ``topk``. A row is read as a table of ``COLUMNS`` columns: the k
    greatest stand in the k columns (and the rest that fills no line of a table) of greatest
    maximum.
    """
    sentences, _, width = scores.shape
    lines = width // COLUMNS
    table = scores[..., : lines * COLUMNS].unflatten(-1, (lines, COLUMNS))
    greatest, column = _added(table.amax(dim=-2), start).flatten(1).topk(k + 1)
    row, column = column[:, :k] // COLUMNS, column[:, :k] % COLUMNS
    sentence = torch.arange(sentences, device=scores.device).unsqueeze(1)
    chosen = _added(
        table[sentence, row, :, column], None if start is None else start.gather(1, row)
    )
    rest = _added(scores[..., lines * COLUMNS :], start)
    values, place = torch.cat([chosen.flatten(1), rest.flatten(1)], dim=-1).topk(k + 1)
    drawn = _draw(greatest, k) | _draw(values, k)
    place = place[:, :k]
    # Of the k columns' lines one after the other, or of the rows' rests.
    number, line = (place // lines).clamp(max=k - 1), place % lines
    in_column = row.gather(1, number) * width + line * COLUMNS + column.gather(1, number)
    left = (place - k * lines).clamp(min=0)
    length = max(1, width - lines * COLUMNS)
    in_rest = left // length * width + lines * COLUMNS + left % length
    return values[:, :k], torch.where(place < k * lines, in_column, in_rest), drawn
