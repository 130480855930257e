"""Dynamic beam allocation: room in the beam for every state of progress with required phrases.

Post and Vilar (2018), section 3. Shapes as in ``decoding.competition``; A letters.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from kakehashi.decoding.ranking import stable_top
from kakehashi.decoding.required import Required
from kakehashi.symbols import EOS, PAD

Chosen = tuple[Int[Tensor, "B K"], Int[Tensor, "B K"]]
"""Rows and pieces, best first."""


def best_in_banks(
    scores: Float[Tensor, "B R V"],
    required: Required,
    ids: Int[Tensor, "B R L"],
    sentence: Int[Tensor, " B"],
    beam: int,
) -> tuple[Chosen, Chosen]:
    """The K = ``beam`` extensions that have places in the beam, and those that go on.

    The former may end, as far as they do; the latter are chosen likewise among all that do not end.
    Besides the best extensions of each hypothesis all those compete that say a piece of a phrase.
    A bank holds the extensions that need equally many pieces more; places in the beam go to the
    banks in turns, in each to the best that is left. If there are more banks than places, evenly
    spread ones, the first and the last among them, get one each. Without required phrases there is
    one bank. What ends is in the last bank: all phrases are held.
    """
    _, outside, inside = required.needs(ids, sentence)
    letters = required.letters[sentence].unsqueeze(1).expand_as(inside)
    values, pieces = stable_top(scores.scatter(-1, letters, -torch.inf), beam + 1)
    value = torch.cat([values, scores.gather(-1, letters)], dim=-1)
    bank = torch.cat([outside.unsqueeze(2).expand_as(values), inside], dim=-1).flatten(1)
    piece = torch.cat([pieces, letters], dim=-1).flatten(1)
    per_row = value.shape[-1]
    value, order = value.flatten(1).sort(dim=1, descending=True, stable=True)
    real = value > -torch.inf
    # A letter that stands among the best with -inf must not be taken for itself: PAD is barred.
    piece = piece.gather(1, order).masked_fill(~real, PAD)
    bank, row = bank.gather(1, order), order // per_row

    def chosen(which: Bool[Tensor, "B n"]) -> Chosen:
        turn = _turns(bank, which, beam)
        places = turn.argsort(dim=1, stable=True)[:, :beam].sort(dim=1).values
        return row.gather(1, places), piece.gather(1, places)

    return chosen(real), chosen(real & (piece != EOS))


def _turns(bank: Tensor, real: Tensor, beam: int) -> Tensor:
    """For each candidate, best first, the turn in which its bank gives it a place."""
    members = torch.nn.functional.one_hot(bank) * real.unsqueeze(2)
    rank = members.cumsum(dim=1).gather(2, bank.unsqueeze(2))[..., 0] - 1
    occupied = members.any(dim=1)
    count = occupied.sum(dim=1, keepdim=True)
    place = (occupied.cumsum(dim=1) - 1).gather(1, bank)
    # Of n banks for k places those at round(i (n - 1) / (k - 1)), i = 0, 1, ..., k - 1.
    steps = torch.arange(beam, device=bank.device) / max(beam - 1, 1)
    spread = (steps * (count - 1)).round().long()
    crowded_out = ~(place.unsqueeze(2) == spread.unsqueeze(1)).any(dim=2) & (count > beam)
    turn = rank + crowded_out * rank.shape[1]
    return turn.masked_fill(~real, 2 * rank.shape[1])
