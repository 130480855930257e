"""Beam search for any model that can take steps.

Shapes: B sentences still searched, K hypotheses of each, R before a step, L steps taken, M source
pieces, V vocabulary, S pieces that there are logits of (with a competition all V).
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from kakehashi.decoding.banks import best_in_banks
from kakehashi.decoding.candidates import Extensions, Pieces, Step, best_extensions, step_of
from kakehashi.decoding.competition import Competition, let_end
from kakehashi.decoding.config import enough
from kakehashi.decoding.coverage import coverage_penalty
from kakehashi.decoding.finished import Finished
from kakehashi.decoding.hypothesis import Hypothesis
from kakehashi.decoding.ranking import RankedRows
from kakehashi.models.interface import Encoded, TranslationModel
from kakehashi.symbols import BOS, EOS, PAD


@dataclass
class _Group:
    """Hypotheses that compete with each other only."""

    live: Float[Tensor, "B K"]
    """What each unfinished hypothesis competes with, -inf where there is none: its log probability,
    but for a repetition penalty."""
    log_probability: Float[Tensor, "B K"]
    """The model's own."""
    ids: Int[Tensor, "B K L"]
    attended: Float[Tensor, "B K M"] | None
    """What each source piece has been attended to, over all steps; None if nothing depends on it.
    """
    finished: Finished

    def keep(self, kept: Int[Tensor, " b"]) -> None:
        """Go on with these sentences only."""
        self.live, self.log_probability = self.live[kept], self.log_probability[kept]
        self.ids = self.ids[kept]
        if self.attended is not None:
            self.attended = self.attended[kept]
        self.finished.keep(kept)


@dataclass
class _Search:
    """The sentences still searched, and how."""

    sentence: Int[Tensor, " B"]
    """Their places in the batch that was given."""
    limit: Int[Tensor, " B"]
    allowed: Bool[Tensor, "B M"]
    groups: list[_Group]
    beam: int
    """Hypotheses of each group."""
    enough: int
    """Finished hypotheses with which a group is through."""
    length_penalty: float
    coverage_penalty: float
    competition: Competition | None
    strength: float
    pieces: Pieces
    """What there are logits of."""
    said: list[Int[Tensor, "B K"]] = field(default_factory=list)
    """Pieces that the groups before have chosen at this step."""

    def keep(self, kept: Int[Tensor, " b"]) -> None:
        """Go on with these sentences only."""
        self.sentence, self.limit = self.sentence[kept], self.limit[kept]
        self.allowed = self.allowed[kept]
        for group in self.groups:
            group.keep(kept)


@torch.inference_mode()
def beam_search(
    model: TranslationModel[Any],
    encoded: Encoded,
    *,
    beam: int,
    max_lengths: Int[Tensor, " B"],
    length_penalty: float,
    patience: float = 1.0,
    n_best: int = 1,
    coverage_penalty: float = 0.0,
    competition: Competition | None = None,
    groups: int = 1,
    strength: float = 0.0,
) -> list[list[Hypothesis]]:
    """The ``n_best`` best translations of each sentence that a beam of K = ``beam`` finds.

    Every step ranks the one-piece extensions of a sentence's hypotheses by log probability. Those
    of the first K that end in EOS are finished; the K best that do not end go on, so that the beam
    stays K wide; an end beyond the first K is none. A sentence is through when ``round(K *
    patience)`` hypotheses have finished (Kasai et al., 2022, "A Call for Clarity in Beam Search":
    what CTranslate2, fairseq and transformers do, the last two with a patience of 1), or at its
    limit; a beam of 1 when it ends. Finished hypotheses rank by ``log p / length **
    length_penalty``, EOS counted in both, plus the coverage penalty.

    A sentence leaves the batch before it is through when nothing can change its answer any more:
    log p only falls and the coverage penalty is never positive, so no unfinished hypothesis can
    score better than its present log p over its greatest allowed length to the penalty. With
    enough patience a wide enough beam finds the best of all translations.

    Args:
        model: in evaluation mode, or dropout has its say.
        encoded: what ``model.encode`` made of the sentences.
        beam: hypotheses kept at every step.
        max_lengths: most pieces of each translation, EOS included, at least 1.
        length_penalty: 0 or more; 0 ranks by log probability alone.
        patience: 1 or more; see ``DecodingConfig``.
        n_best: hypotheses to return, at most ``beam``.
        coverage_penalty: 0 or more; see ``DecodingConfig``.
        competition: rules and penalties that have a say in every step, or None.
        groups: parts of a diverse beam (Vijayakumar et al., 2018), each a beam of its own of
            ``beam / groups``, with its own patience; they choose one after the other. A group
            that is through says nothing any more.
        strength: what a piece loses, in the choice of a group at one step, for each hypothesis of
            the groups before that has chosen it. Scores stay what they are.

    Returns:
        For each sentence at least one hypothesis, best first: the finished ones, at most
        ``n_best``; or where none ended within the limit the best unfinished ones. Of several groups
        the best of each, then the second of each, and so on; what two groups found counts once.

    Raises:
        ValueError: unless ``1 <= n_best <= beam``, the penalties are 0 or more, the patience is 1
            or more, and the groups divide the beam.
    """
    if not 1 <= n_best <= beam:
        raise ValueError(f"n_best is {n_best}: it must be from 1 to the beam, {beam}")
    if not length_penalty >= 0:
        raise ValueError(f"length_penalty is {length_penalty}: it must be 0 or more")
    if not coverage_penalty >= 0:
        raise ValueError(f"coverage_penalty is {coverage_penalty}: it must be 0 or more")
    if not patience >= 1:
        raise ValueError(f"patience is {patience}: it must be 1 or more")
    if groups < 1 or beam % groups:
        raise ValueError(f"{groups} groups do not divide a beam of {beam}")
    sentences, device = max_lengths.shape[0], encoded.annotations.device
    found: list[list[Hypothesis]] = [[] for _ in range(sentences)]
    nothing = torch.zeros(sentences, 1, device=device)
    search = _Search(
        sentence=torch.arange(sentences, device=device),
        limit=max_lengths.to(device),
        allowed=encoded.allowed,
        groups=[
            _Group(
                live=nothing,
                log_probability=nothing,
                ids=torch.zeros(sentences, 1, 0, dtype=torch.int64, device=device),
                attended=nothing.new_zeros(sentences, 1, encoded.allowed.shape[1])
                if coverage_penalty
                else None,
                finished=Finished.empty(sentences, min(n_best, beam // groups), device),
            )
            for _ in range(groups)
        ],
        beam=beam // groups,
        enough=enough(beam // groups, patience),
        length_penalty=length_penalty,
        coverage_penalty=coverage_penalty,
        competition=competition,
        strength=strength,
        # Rules may ask for pieces that are never said otherwise.
        pieces=Pieces.of(model.spoken() if competition is None else None),
    )
    tokens = torch.full((sentences, groups), BOS, device=device)
    state = model.start(encoded, groups, search.pieces.numbers)
    while True:
        attention = None
        if coverage_penalty:
            logits, state, attention = model.attending_step(tokens, state)
        else:
            logits, state = model.step(tokens, state)
        rows = _extend(search, logits, attention)
        done = _done(search)
        kept = None
        if bool(done.any()):
            for index in done.nonzero().flatten().tolist():
                found[int(search.sentence[index])] = _answer(search, index, n_best)
            kept = (~done).nonzero().flatten()
            if not len(kept):
                return found
            search.keep(kept)
            rows = rows[kept]
        state = model.select(state, rows, kept)
        tokens = _side_by_side([group.ids[..., -1] for group in search.groups])


def _side_by_side(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


def _extend(
    search: _Search, logits: Float[Tensor, "B R S"], attention: Float[Tensor, "B R M"] | None
) -> Int[Tensor, "B K"]:
    """Grow every hypothesis by a piece; the flat rows that are continued."""
    sentences, hypotheses = logits.shape[:2]
    first = torch.arange(sentences, device=logits.device).unsqueeze(1) * hypotheses
    search.said = []
    rows, start = [], 0
    for group in search.groups:
        part = slice(start, start + group.live.shape[1])
        row = _extend_group(
            search, group, logits[:, part], None if attention is None else attention[:, part]
        )
        rows.append(first + start + row)
        start = part.stop
    return _side_by_side(rows)


def _extend_group(
    search: _Search,
    group: _Group,
    logits: Float[Tensor, "B R S"],
    attention: Float[Tensor, "B R M"] | None,
) -> Int[Tensor, "B K"]:
    """Grow the hypotheses of a group; which of its rows are continued."""
    if search.competition is None:
        step = best_extensions(logits, group.live, search.beam, search.pieces)
    else:
        step = _choose(search, search.competition, group, logits)
    first, going = step.first, step.going
    attended = None
    if group.attended is not None and attention is not None:
        attended = group.attended + attention
    group.live = going.competing.masked_fill(going.token == EOS, -torch.inf)
    ended = (first.token == EOS) & (first.competing > -torch.inf)
    if bool(ended.any()):
        ids = _longer(group.ids, first)
        score = first.competing / ids.shape[-1] ** search.length_penalty
        if attended is not None:
            score = score + coverage_penalty(
                _of_rows(attended, first.row), search.allowed, search.coverage_penalty
            )
        group.finished.add(first.log_probability, score, ids, ended)
        through = group.finished.number >= search.enough
        group.live = group.live.masked_fill(through.unsqueeze(1), -torch.inf)
    group.log_probability = going.log_probability
    group.ids = _longer(group.ids, going)
    if attended is not None:
        group.attended = _of_rows(attended, going.row)
    return going.row


def _of_rows(values: Tensor, row: Int[Tensor, "B K"]) -> Tensor:
    """What the chosen hypotheses have, [B K n] of [B R n]."""
    return values.gather(1, row.unsqueeze(-1).expand(-1, -1, values.shape[-1]))


def _longer(ids: Int[Tensor, "B R L"], chosen: Extensions) -> Int[Tensor, "B K longer"]:
    return torch.cat([_of_rows(ids, chosen.row), chosen.token.unsqueeze(-1)], dim=-1)


def _choose(
    search: _Search, competition: Competition, group: _Group, logits: Float[Tensor, "B R V"]
) -> Step:
    """The extensions that end or go on.

    All of the vocabulary is scored, which a search without rules does not need.
    """
    own, scores = competition.scores(logits, group.ids, search.sentence)
    let_end(scores, own, group.live > -torch.inf, group.finished.score[:, 0] == -torch.inf)
    scores = scores + group.live.unsqueeze(-1)
    total = own + group.log_probability.unsqueeze(-1)
    ranked = scores
    if search.said and search.strength:
        said = torch.cat(search.said, dim=1)
        count = scores.new_zeros(scores.shape[0], scores.shape[2])
        count.scatter_add_(1, said, torch.ones_like(said, dtype=count.dtype))
        ranked = scores - search.strength * count.unsqueeze(1)

    def extensions(row: Tensor, token: Tensor) -> Extensions:
        place = row * scores.shape[2] + token
        competing, log_probability = (
            values.flatten(1).gather(1, place) for values in (scores, total)
        )
        return Extensions(competing, row, token, log_probability)

    if competition.required is not None and search.beam > 1:
        first, going = best_in_banks(
            ranked, competition.required, group.ids, search.sentence, search.beam
        )
        step = Step(extensions(*first), extensions(*going))
    else:
        _, *best = RankedRows(ranked).best(torch.zeros_like(group.live), 2 * search.beam)
        step = step_of(extensions(*best), search.beam)
    if len(search.groups) > 1:
        search.said += [_said(step.first, True), _said(step.going, False)]
    return step


def _said(chosen: Extensions, ended: bool) -> Int[Tensor, "B K"]:
    """The pieces of the extensions that end, or that do not; elsewhere PAD, which is never said."""
    said = (chosen.competing > -torch.inf) & ((chosen.token == EOS) == ended)
    return chosen.token.masked_fill(~said, PAD)


def _done(search: _Search) -> Bool[Tensor, " B"]:
    """Sentences whose n-best list is settled, or that have come to their limit."""
    settled = search.limit <= search.groups[0].ids.shape[-1]
    groups = [
        group.live.amax(dim=1) / search.limit**search.length_penalty <= group.finished.score[:, -1]
        for group in search.groups
    ]
    return settled | (groups[0] if len(groups) == 1 else torch.stack(groups).all(dim=0))


def _answer(search: _Search, index: int, n_best: int) -> list[Hypothesis]:
    """The n-best list of a sentence that leaves: finished hypotheses, or else unfinished ones."""
    found = [group.finished.hypotheses(index) for group in search.groups]
    if not any(found):
        found = [_unfinished(search, group, index, n_best) for group in search.groups]
    if len(found) == 1:
        return found[0]
    by_ids: dict[tuple[int, ...], Hypothesis] = {}
    for turn in range(max(map(len, found))):
        for group in found:
            for hypothesis in group[turn : turn + 1]:
                by_ids.setdefault(hypothesis.ids, hypothesis)
    return sorted(list(by_ids.values())[:n_best], key=lambda h: -h.score)


def _unfinished(search: _Search, group: _Group, index: int, n_best: int) -> list[Hypothesis]:
    live, order = group.live[index].sort(descending=True, stable=True)
    scores = live / group.ids.shape[-1] ** search.length_penalty
    if group.attended is not None:
        cover = coverage_penalty(group.attended, search.allowed, search.coverage_penalty)[index]
        scores, by_score = (scores + cover[order]).sort(descending=True, stable=True)
        live, order = live[by_score], order[by_score]
    unfinished = []
    for slot in range(min(n_best, len(order))):
        if live[slot] == -torch.inf:
            break
        ids = tuple(group.ids[index, order[slot]].tolist())
        own = float(group.log_probability[index, order[slot]])
        unfinished.append(Hypothesis(ids, float(scores[slot]), own, False))
    return unfinished
