"""The greatest of many numbers, in an order that draws do not leave open."""

from jaxtyping import Float, Int
from torch import Tensor


def stable_top(
    scores: Float[Tensor, "*rows V"], k: int
) -> tuple[Float[Tensor, "*rows k"], Int[Tensor, "*rows k"]]:
    """The k greatest of each row (all, if there are fewer) and their places, greatest first.

    Of equals the first: ``Tensor.topk`` leaves their order open, so rows with a draw at the border
    of the k are settled by a stable sort.
    """
    k = min(k, scores.shape[-1])
    values, places = scores.topk(min(k + 1, scores.shape[-1]))
    drawn = values[..., k - 1] == values[..., -1]
    if values.shape[-1] > k and bool(drawn.any()):
        ordered, order = scores[drawn].sort(dim=-1, descending=True, stable=True)
        values[drawn], places[drawn] = ordered[..., : k + 1], order[..., : k + 1]
    places, order = places[..., :k].sort(dim=-1)
    values, order = values[..., :k].gather(-1, order).sort(dim=-1, descending=True, stable=True)
    return values, places.gather(-1, order)


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
