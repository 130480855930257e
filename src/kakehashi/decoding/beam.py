"""Beam search for any model that can take steps.

Shapes: B sentences still searched, K hypotheses of each, L steps taken, V vocabulary.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from kakehashi.decoding.candidates import best_extensions
from kakehashi.decoding.finished import Finished
from kakehashi.decoding.hypothesis import Hypothesis
from kakehashi.models.interface import Encoded, TranslationModel
from kakehashi.symbols import BOS, EOS


@dataclass
class _Beam:
    """The sentences still searched."""

    sentence: Int[Tensor, " B"]
    """Their places in the batch that was given."""
    live: Float[Tensor, "B K"]
    """Log probability of each unfinished hypothesis, -inf where there is none."""
    ids: Int[Tensor, "B K L"]
    limit: Int[Tensor, " B"]
    finished: Finished

    def keep(self, kept: Int[Tensor, " b"]) -> None:
        """Go on with these sentences only."""
        self.sentence, self.live = self.sentence[kept], self.live[kept]
        self.ids, self.limit = self.ids[kept], self.limit[kept]
        self.finished.keep(kept)


@torch.inference_mode()
def beam_search(
    model: TranslationModel[Any],
    encoded: Encoded,
    *,
    beam: int,
    max_lengths: Int[Tensor, " B"],
    length_penalty: float,
    n_best: int = 1,
) -> list[list[Hypothesis]]:
    """The ``n_best`` best translations of each sentence that a beam of K = ``beam`` finds.

    Every step keeps the K best one-piece extensions of a sentence's hypotheses by log probability;
    those that end in EOS are finished and stop competing, the others go on. Finished hypotheses
    rank by ``log p / length ** length_penalty``, EOS counted in both. A sentence leaves the batch
    when nothing can change its answer any more: log p only falls, so no unfinished hypothesis can
    score better than its present log p over its greatest allowed length to the penalty. What comes
    out is therefore the answer of a search that always goes on to the limit, and a wide enough
    beam finds the best of all translations.

    Args:
        model: in evaluation mode, or dropout has its say.
        encoded: what ``model.encode`` made of the sentences.
        beam: hypotheses kept at every step.
        max_lengths: most pieces of each translation, EOS included, at least 1.
        length_penalty: 0 or more; 0 ranks by log probability alone.
        n_best: hypotheses to return, at most ``beam``.

    Returns:
        For each sentence at least one hypothesis, best first: the finished ones, at most
        ``n_best``; or where none ended within the limit the best unfinished ones.

    Raises:
        ValueError: unless ``1 <= n_best <= beam`` and ``length_penalty >= 0``.
    """
    if not 1 <= n_best <= beam:
        raise ValueError(f"n_best is {n_best}: it must be from 1 to the beam, {beam}")
    if not length_penalty >= 0:
        raise ValueError(f"length_penalty is {length_penalty}: it must be 0 or more")
    sentences, device = max_lengths.shape[0], encoded.annotations.device
    found: list[list[Hypothesis]] = [[] for _ in range(sentences)]
    search = _Beam(
        sentence=torch.arange(sentences, device=device),
        live=torch.zeros(sentences, 1, device=device),
        ids=torch.zeros(sentences, 1, 0, dtype=torch.int64, device=device),
        limit=max_lengths.to(device),
        finished=Finished.empty(sentences, n_best, device),
    )
    tokens = torch.full((sentences, 1), BOS, device=device)
    state = model.start(encoded, 1)
    while True:
        logits, state = model.step(tokens, state)
        rows = _extend(search, logits, beam, length_penalty)
        done = _done(search, length_penalty)
        kept = None
        if bool(done.any()):
            for index in done.nonzero().flatten().tolist():
                best = _answer(search, index, length_penalty, n_best)
                found[int(search.sentence[index])] = best
            kept = (~done).nonzero().flatten()
            if not len(kept):
                return found
            search.keep(kept)
            rows = rows[kept]
        state = model.select(state, rows, kept)
        tokens = search.ids[..., -1]


def _extend(
    search: _Beam, logits: Float[Tensor, "B R V"], beam: int, length_penalty: float
) -> Int[Tensor, "B K"]:
    """Grow every hypothesis by a piece; the flat rows that are continued."""
    sentences, hypotheses = search.live.shape
    best = best_extensions(logits, search.live, beam)
    history = best.row.unsqueeze(-1).expand(-1, -1, search.ids.shape[-1])
    search.ids = torch.cat([search.ids.gather(1, history), best.token.unsqueeze(-1)], dim=-1)
    ended = (best.token == EOS) & (best.log_probability > -torch.inf)
    if bool(ended.any()):
        score = best.log_probability / search.ids.shape[-1] ** length_penalty
        search.finished.add(best.log_probability, score, search.ids, ended)
    search.live = best.log_probability.masked_fill(best.token == EOS, -torch.inf)
    first = torch.arange(sentences, device=logits.device).unsqueeze(1) * hypotheses
    return first + best.row


def _done(search: _Beam, length_penalty: float) -> Bool[Tensor, " B"]:
    """Sentences whose n-best list is settled, or that have come to their limit."""
    best_possible = search.live.amax(dim=1) / search.limit**length_penalty
    settled = best_possible <= search.finished.score[:, -1]
    return settled | (search.limit <= search.ids.shape[-1])


def _answer(search: _Beam, index: int, length_penalty: float, n_best: int) -> list[Hypothesis]:
    """The n-best list of a sentence that leaves: finished hypotheses, or else unfinished ones."""
    if finished := search.finished.hypotheses(index):
        return finished
    live, order = search.live[index].sort(descending=True, stable=True)
    scores = live / search.ids.shape[-1] ** length_penalty
    unfinished = []
    for slot in range(min(n_best, len(order))):
        if live[slot] == -torch.inf:
            break
        ids = tuple(search.ids[index, order[slot]].tolist())
        unfinished.append(Hypothesis(ids, float(scores[slot]), float(live[slot]), False))
    return unfinished
