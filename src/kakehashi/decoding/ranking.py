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

    Of equals the first: ``Tensor.topk`` leaves their order open.
    """
    alone = scores.reshape(-1, 1, scores.shape[-1])
    values, _, places = RankedRows(alone).best(alone.new_zeros(alone.shape[:2]), k)
    return values.view(*scores.shape[:-1], -1), places.view(*scores.shape[:-1], -1)


def _draw(values: Float[Tensor, "*rows n"], k: int) -> Bool[Tensor, "*rows"]:
    """Rows of ordered values whose first k are not certain: the next one is as great."""
    if values.shape[-1] <= k:
        return torch.zeros_like(values[..., 0], dtype=torch.bool)
    return values[..., k - 1] == values[..., k]


class RankedRows:
    """The scores of a sentence's hypotheses, to be ranked among each other.

    On a CPU each row is read once, as a table of ``COLUMNS`` columns and a rest that fills no line;
    from then on only the columns of greatest maximum are looked at.

    Args:
        scores: of R rows of each of B sentences.
        first: the first piece that counts.
    """

    def __init__(self, scores: Float[Tensor, "B R V"], first: int = 0) -> None:
        self._scores, self._first = scores, first
        self._lines = (scores.shape[-1] - first) // COLUMNS
        self._end = first + self._lines * COLUMNS
        self._maxima: Float[Tensor, "B R columns"] | None = None
        if scores.device.type == "cpu" and self._lines >= 4:
            table = scores[..., first : self._end].unflatten(-1, (self._lines, COLUMNS))
            self._maxima = table.amax(dim=-2)

    def greatest(self) -> Int[Tensor, "B R"]:
        """The piece of each row's greatest number, of equals any."""
        if self._maxima is None:
            return self._scores[..., self._first :].argmax(dim=-1) + self._first
        rest = self._scores[..., self._end :]
        best = torch.cat([self._maxima, rest], dim=-1).argmax(dim=-1, keepdim=True)
        start = best.clamp(max=COLUMNS - 1) + self._first
        places = start + torch.arange(0, self._lines * COLUMNS, COLUMNS)
        line = self._scores.gather(-1, places).argmax(dim=-1, keepdim=True)
        in_rest = best - COLUMNS + self._end
        return torch.where(best < COLUMNS, start + COLUMNS * line, in_rest).squeeze(-1)

    def best(
        self, plus: Float[Tensor, "B R"], k: int
    ) -> tuple[Float[Tensor, "B k"], Int[Tensor, "B k"], Int[Tensor, "B k"]]:
        """The k greatest of each sentence (all, if there are fewer), their rows and pieces.

        Greatest first; of equals those of the first row, and then the first piece.

        Args:
            plus: added to each score of a row.
            k: how many.
        """
        plus, pieces = plus.unsqueeze(-1), self._scores.shape[-1] - self._first
        if self._maxima is None or 2 * (k + 1) > self._maxima[0].numel():
            scores = (self._scores[..., self._first :] + plus).flatten(1)
            k = min(k, scores.shape[1])
            values, places = scores.topk(min(k + 1, scores.shape[1]))
            drawn = _draw(values, k)
            values, places = values[:, :k], places[:, :k]
        else:
            values, places, drawn = self._best_by_columns(plus, self._maxima, k)
        if bool(drawn.any()):
            scores = self._scores[drawn][..., self._first :] + plus[drawn]
            ordered, order = scores.flatten(1).sort(dim=-1, descending=True, stable=True)
            values[drawn], places[drawn] = ordered[:, :k], order[:, :k]
        places, order = places.sort(dim=-1)
        values, order = values.gather(-1, order).sort(dim=-1, descending=True, stable=True)
        places = places.gather(-1, order)
        return values, places // pieces, places % pieces + self._first

    def _best_by_columns(
        self, plus: Float[Tensor, "B R 1"], maxima: Float[Tensor, "B R columns"], k: int
    ) -> tuple[Float[Tensor, "B k"], Int[Tensor, "B k"], Bool[Tensor, " B"]]:
        """The k greatest in any order, their places, and where a draw leaves open which they are.

        They stand in the k columns of greatest maximum, of any rows, and in the rests.
        """
        sentences, rows, vocabulary = self._scores.shape
        lines, pieces = self._lines, vocabulary - self._first
        greatest, column = (maxima + plus).flatten(1).topk(k + 1)
        row = column[:, :k] // COLUMNS
        start = row * pieces + column[:, :k] % COLUMNS
        places = (start.unsqueeze(-1) + COLUMNS * torch.arange(lines)).flatten(1)
        # Rows of the scores themselves are longer than what counts of them.
        index = places + ((row + 1) * self._first).repeat_interleave(lines, dim=1)
        chosen = self._scores.flatten(1).gather(1, index).view(sentences, k, lines)
        chosen = chosen + plus.squeeze(-1).gather(1, row).unsqueeze(-1)
        rest = self._scores[..., self._end :] + plus
        values, place = torch.cat([chosen.flatten(1), rest.flatten(1)], dim=1).topk(k + 1)
        drawn = _draw(greatest, k) | _draw(values, k)
        first_of_row = torch.arange(0, rows * pieces, pieces).unsqueeze(1)
        rests = (first_of_row + torch.arange(lines * COLUMNS, pieces)).flatten()
        found = torch.cat([places, rests.expand(sentences, -1)], dim=1).gather(1, place[:, :k])
        return values[:, :k], found, drawn
