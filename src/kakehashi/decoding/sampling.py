"""Drawing translations instead of searching for the best.

Shapes: B sentences still sampled, R draws of each that go on, L steps taken, V vocabulary.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kakehashi.decoding.competition import Competition, let_end
from kakehashi.decoding.hypothesis import Hypothesis
from kakehashi.decoding.methods import Sampling
from kakehashi.decoding.ranking import stable_top
from kakehashi.models.interface import Encoded, TranslationModel
from kakehashi.symbols import BOS, EOS


@torch.inference_mode()
def sample(
    model: TranslationModel[Any],
    encoded: Encoded,
    *,
    sampling: Sampling,
    draws: int,
    keys: Sequence[int],
    max_lengths: Int[Tensor, " B"],
    length_penalty: float,
    competition: Competition,
) -> list[list[Hypothesis]]:
    """``draws`` translations of each sentence, drawn piece by piece until EOS or the limit.

    Draw d of a sentence is a function of the seed, the sentence's key and d: its neighbours, and
    how many draws there are, change nothing. Log probabilities are the model's own, without the
    temperature.

    Args:
        model: in evaluation mode, or dropout has its say.
        encoded: what ``model.encode`` made of the sentences.
        sampling: how pieces are drawn.
        draws: how many translations of each sentence.
        keys: a number for each sentence.
        max_lengths: most pieces of each translation, EOS included, at least 1.
        length_penalty: for the scores, which have no say here.
        competition: which pieces can be drawn.

    Returns:
        The draws of each sentence, in order; the same translation may come several times.
    """
    device = encoded.annotations.device
    sentences = max_lengths.shape[0]
    found: list[list[Hypothesis | None]] = [[None] * draws for _ in range(sentences)]
    sentence = torch.arange(sentences, device=device)
    limit = max_lengths.to(device)
    draw = torch.arange(draws, device=device).expand(sentences, draws)
    stream = _mixed(_mixed(_mixed(_numbers([sampling.seed], device)) + _numbers(keys, device)))
    stream = _mixed(stream.unsqueeze(1) + draw)
    going = torch.ones_like(draw, dtype=torch.bool)
    log_probability = torch.zeros(sentences, draws, device=device)
    ids = torch.zeros(sentences, draws, 0, dtype=torch.int64, device=device)
    tokens = torch.full((sentences, draws), BOS, device=device)
    state = model.start(encoded, draws)
    while True:
        logits, state = model.step(tokens, state)
        rows = tokens.shape[1]
        own, scores = competition.scores(
            logits.flatten(0, 1).unsqueeze(1),
            ids.flatten(0, 1).unsqueeze(1),
            sentence.repeat_interleave(rows),
        )
        # A row that has ended is drawn on until its sentence leaves; anything will do.
        alive = going.flatten()
        let_end(scores, own, alive.unsqueeze(1), torch.ones_like(alive))
        uniform = _uniform(stream.flatten(), ids.shape[-1])
        token = _draw(_probabilities(scores[:, 0], sampling), uniform)
        log_probability = log_probability + own[:, 0].gather(1, token.unsqueeze(1)).view(-1, rows)
        tokens = token.view(-1, rows)
        ids = torch.cat([ids, tokens.unsqueeze(-1)], dim=-1)
        ended = tokens == EOS
        done = ended | (limit <= ids.shape[-1]).unsqueeze(1)
        if not bool((done & going).any()):
            state = model.select(state, torch.arange(len(token), device=device).view_as(tokens))
            continue
        for place, row in (done & going).nonzero().tolist():
            pieces, finished = tuple(ids[place, row].tolist()), bool(ended[place, row])
            total = float(log_probability[place, row])
            content = pieces[:-1] if finished else pieces
            score = total / len(pieces) ** length_penalty
            hypothesis = Hypothesis(content, score, total, finished)
            found[int(sentence[place])][int(draw[place, row])] = hypothesis
        going = going & ~done
        kept = going.any(dim=1).nonzero().flatten()
        if not len(kept):
            return [[h for h in drawn if h is not None] for drawn in found]
        # Those that go on come first; as many rows as the sentence with most of them has.
        most = int(going.sum(dim=1).max())
        order = going[kept].int().argsort(dim=1, descending=True, stable=True)[:, :most]
        sentence, limit = sentence[kept], limit[kept]
        draw, stream, going, log_probability, tokens = (
            each[kept].gather(1, order) for each in (draw, stream, going, log_probability, tokens)
        )
        ids = ids[kept].gather(1, order.unsqueeze(-1).expand(-1, -1, ids.shape[-1]))
        state = model.select(state, kept.unsqueeze(1) * rows + order, kept)


def _probabilities(scores: Float[Tensor, "R V"], sampling: Sampling) -> Float[Tensor, "R V"]:
    """What each piece is drawn with, up to a factor; 0 for those that cannot be."""
    # The best piece is put at 0: at a tiny temperature, which must not be 0 as float32, it stays
    # there, and all others become impossible.
    scores = scores - scores.amax(dim=-1, keepdim=True)
    scores = scores / max(sampling.temperature, 1e-30)
    if sampling.top_k:
        values, pieces = stable_top(scores, sampling.top_k)
        scores = torch.full_like(scores, -torch.inf).scatter(-1, pieces, values)
    probabilities = scores.softmax(dim=-1)
    if sampling.top_p < 1:
        ordered, order = probabilities.sort(dim=-1, descending=True, stable=True)
        before = ordered.cumsum(dim=-1) - ordered
        # The best piece stays, however little top_p is: as float32 it may be 0.
        barred = before >= sampling.top_p
        barred[:, 0] = False
        ordered = ordered.masked_fill(barred, 0)
        probabilities = torch.zeros_like(ordered).scatter(-1, order, ordered)
    return probabilities


def _draw(probabilities: Float[Tensor, "R V"], uniform: Float[Tensor, " R"]) -> Int[Tensor, " R"]:
    """The piece at which the cumulated probability passes the uniform number in [0, 1)."""
    cumulated = probabilities.double().cumsum(dim=-1)
    total = cumulated[:, -1]
    threshold = (uniform * total).minimum(torch.nextafter(total, torch.zeros_like(total)))
    return (cumulated <= threshold.unsqueeze(-1)).sum(dim=-1)


def _numbers(values: Sequence[int], device: torch.device) -> Int[Tensor, " N"]:
    """Integers of any size as 64 bits."""
    wrapped = [(value + 2**63) % 2**64 - 2**63 for value in values]
    return torch.tensor(wrapped, dtype=torch.int64, device=device)


def _shifted(x: Int[Tensor, "*N"], bits: int) -> Int[Tensor, "*N"]:
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _mixed(x: Int[Tensor, "*N"]) -> Int[Tensor, "*N"]:
    """A step of splitmix64 (Steele, Lea and Flood, 2014): 64 bits that look random, from any 64."""
    x = x + (0x9E3779B97F4A7C15 - 2**64)
    x = (x ^ _shifted(x, 30)) * (0xBF58476D1CE4E5B9 - 2**64)
    x = (x ^ _shifted(x, 27)) * (0x94D049BB133111EB - 2**64)
    return x ^ _shifted(x, 31)


def _uniform(stream: Int[Tensor, " R"], step: int) -> Float[Tensor, " R"]:
    """The number in [0, 1) of each stream at a step, in double precision."""
    return _shifted(_mixed(stream + step), 11).double() / 2**53
