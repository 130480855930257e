"""Greedy search: beam search with a beam of 1, without the beam's bookkeeping."""

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from kakehashi.decoding.candidates import Pieces, best_column, log_probabilities
from kakehashi.decoding.competition import Competition, let_end
from kakehashi.decoding.hypothesis import Hypothesis
from kakehashi.models.interface import Encoded, TranslationModel
from kakehashi.symbols import BOS, EOS


@torch.inference_mode()
def greedy_search(
    model: TranslationModel[Any],
    encoded: Encoded,
    *,
    max_lengths: Int[Tensor, " B"],
    length_penalty: float,
    competition: Competition | None = None,
    scored: bool = True,
) -> list[list[Hypothesis]]:
    """The most probable piece at every step, until EOS or the limit; one hypothesis a sentence.

    The same answer as ``beam_search(..., beam=1)``, scores included; see there for the arguments.
    Where neither ``scored`` nor a competition asks for them, score and log probability are NaN: the
    greatest logit is found without the softmax.
    """
    device = encoded.annotations.device
    sentences = max_lengths.shape[0]
    found: list[list[Hypothesis]] = [[] for _ in range(sentences)]
    sentence = torch.arange(sentences, device=device)
    limit = max_lengths.to(device)
    unknown = competition is None and not scored
    log_probability = torch.full((sentences,), torch.nan if unknown else 0.0, device=device)
    competing = log_probability
    ids = torch.zeros(sentences, 0, dtype=torch.int64, device=device)
    tokens = torch.full((sentences, 1), BOS, device=device)
    # Rules may ask for pieces that are never said otherwise.
    pieces = Pieces.of(model.spoken() if competition is None else None)
    state = model.start(encoded, 1, pieces.numbers)
    while True:
        logits, state = model.step(tokens, state)
        if competition is None:
            column = best_column(logits[:, 0], pieces)
            token = pieces.at(column)
            if scored:
                own = log_probabilities(logits, column.unsqueeze(1))
                log_probability = log_probability + own[:, 0, 0]
                competing = log_probability
        else:
            own, scores = competition.scores(logits, ids.unsqueeze(1), sentence)
            alive = torch.ones_like(tokens, dtype=torch.bool)
            let_end(scores, own, alive, alive[:, 0])
            token = scores[:, 0].argmax(dim=-1, keepdim=True)
            log_probability = log_probability + own[:, 0].gather(1, token)[:, 0]
            competing = competing + scores[:, 0].gather(1, token)[:, 0]
        ids = torch.cat([ids, token], dim=1)
        ended = token[:, 0] == EOS
        done = ended | (limit <= ids.shape[1])
        if bool(done.any()):
            score = competing / ids.shape[1] ** length_penalty
            columns = (sentence, ids, score, log_probability, ended)
            for place, said, *rest in zip(*(c[done].tolist() for c in columns), strict=True):
                found[place] = [_hypothesis(said, *rest)]
            kept = (~done).nonzero().flatten()
            if not len(kept):
                return found
            sentence, limit = sentence[kept], limit[kept]
            log_probability, competing, ids = log_probability[kept], competing[kept], ids[kept]
            state = model.select(state, kept.unsqueeze(1), kept)
            token = token[kept]
        tokens = token


def _hypothesis(
    said: list[int], score: float, log_probability: float, finished: bool
) -> Hypothesis:
    return Hypothesis(tuple(said[:-1] if finished else said), score, log_probability, finished)
