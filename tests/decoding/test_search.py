"""Every search with rules and penalties against the list of all translations."""

import math
from itertools import pairwise, product
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from kakehashi.decoding.beam import beam_search
from kakehashi.decoding.competition import competition
from kakehashi.decoding.config import DecodingConfig
from kakehashi.decoding.hypothesis import Hypothesis
from kakehashi.decoding.limits import max_lengths
from kakehashi.decoding.methods import Beam, DiverseBeam, Method, Sampling
from kakehashi.decoding.rules import Rules
from kakehashi.decoding.search import search
from kakehashi.errors import ConfigError
from kakehashi.models.interface import TranslationModel
from kakehashi.symbols import BOS, EOS, UNK

FEW = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
V = 7
Ids = tuple[int, ...]
PIECE = st.integers(EOS + 1, V - 1)
PHRASE = st.lists(PIECE, min_size=1, max_size=3).map(tuple)


def encode(model: Any, lengths: list[int], width: int = 3) -> Any:
    """Sentence i begins with piece 11 + i and has ``lengths[i]`` pieces."""
    source = torch.full((len(lengths), width), 4)
    source[:, 0] = 11 + torch.arange(len(lengths))
    return model.encode(source, torch.arange(width) < torch.tensor(lengths).unsqueeze(1))


def holds(ids: Ids, phrase: Ids) -> list[int]:
    """Where the phrase ends."""
    n = len(phrase)
    return [end for end in range(n, len(ids) + 1) if ids[end - n : end] == phrase]


def breaks(ids: Ids, config: DecodingConfig, rules: Rules) -> bool:
    """Whether a piece after the prefix ends something that must not stand."""
    kept = len(rules.prefix)
    if ids[:kept] != rules.prefix:
        return True
    if any(end > kept for phrase in rules.forbidden for end in holds(ids, phrase)):
        return True
    n = config.no_repeat_ngram
    grams = [ids[i : i + n] for i in range(len(ids) - n + 1)] if n else []
    return any(grams[i] in grams[:i] and i + n > kept for i in range(len(grams)))


def log_softmax(logits: list[float]) -> list[float]:
    total = math.log(math.fsum(map(math.exp, logits)))
    return [x - total for x in logits]


class Exhaustive:
    """All translations of a scripted model, judged one at a time by the plainest formulas."""

    def __init__(self, script: Any, config: DecodingConfig, places: int = 3) -> None:
        self.script, self.config, self.places = script, config, places
        self.known: dict[tuple[int, Ids], tuple[list[float], list[float]]] = {}

    def limit(self, length: int) -> int:
        return math.floor(self.config.max_ratio * length) + self.config.max_extra

    def sums(self, sentence: int, pieces: Ids) -> tuple[float, float]:
        """Log probability, and with the repetition penalty."""
        if not pieces:
            return 0.0, 0.0
        before = pieces[:-1]
        if (sentence, before) not in self.known:
            logits = list(self.script(sentence, before))
            penalised = list(logits)
            for said in set(before):
                x, penalty = logits[said], self.config.repetition_penalty
                penalised[said] = x / penalty if x > 0 else x * penalty
            self.known[sentence, before] = log_softmax(logits), log_softmax(penalised)
        own, competing = self.known[sentence, before]
        sums = self.sums(sentence, before)
        return sums[0] + own[pieces[-1]], sums[1] + competing[pieces[-1]]

    def coverage(self, pieces: Ids, length: int) -> float:
        """Of the scripted attention: 3/4 on the place that the last piece names."""
        total = 0.0
        for place in range(length):
            steps = [
                0.75 if piece % self.places == place else 0.25 / (self.places - 1)
                for piece in (BOS, *pieces[:-1])
            ]
            total += math.log(min(sum(steps), 1))
        return total

    def possible(self, limit: int, rules: Rules) -> tuple[Ids, ...]:
        """The required phrases that fit, first come first served."""
        kept: tuple[Ids, ...] = ()
        room = limit - 1 - len(rules.prefix)
        for phrase in rules.required:
            if any(
                all(holds((*rules.prefix, *rest), p) for p in (*kept, phrase))
                for length in range(room + 1)
                for rest in product(range(EOS + 1, V), repeat=length)
            ):
                kept = (*kept, phrase)
        return kept

    def best(
        self, sentence: int, length: int, rules: Rules, unknown: bool = False
    ) -> list[tuple[float, float, Ids]]:
        """(score, log probability, pieces) of every finished translation, best first."""
        limit, found = self.limit(length), []
        required = self.possible(limit, rules)
        pieces = [UNK] * unknown + list(range(EOS + 1, V))
        for n in range(max(0, math.floor(self.config.min_ratio * length) - 1), limit):
            for ids in product(pieces, repeat=n):
                if breaks(ids, self.config, rules) or not all(holds(ids, p) for p in required):
                    continue
                own, competing = self.sums(sentence, (*ids, EOS))
                score = competing / (n + 1) ** self.config.length_penalty
                if self.config.coverage_penalty:
                    cover = self.coverage((*ids, EOS), length)
                    score += self.config.coverage_penalty * cover
                found.append((score, own, ids))
        return sorted(found, reverse=True)


PARTS = st.tuples(
    st.lists(PIECE, max_size=2).map(tuple),
    st.lists(PHRASE, max_size=2).map(tuple),
    st.lists(PHRASE, max_size=2).map(tuple),
)
"""Of rules. (Made outside of the strategy: what checks their types while tests run is random.)"""


def made(parts: tuple[Ids, tuple[Ids, ...], tuple[Ids, ...]]) -> Rules:
    prefix, required, forbidden = parts
    return Rules(
        prefix, required, tuple(f for f in forbidden if not any(holds(r, f) for r in required))
    )


@FEW
@given(
    seed=st.integers(0, 10**6),
    lengths=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    parts=st.lists(PARTS, min_size=3, max_size=3),
    length_penalty=st.sampled_from([0.0, 1.0]),
    coverage_penalty=st.sampled_from([0.0, 0.3]),
    repetition_penalty=st.sampled_from([1.0, 1.7]),
    no_repeat_ngram=st.integers(0, 3),
    min_ratio=st.sampled_from([0.0, 0.5, 1.0]),
    unknown=st.booleans(),
)
def test_a_wide_beam_finds_the_best_of_all_within_the_rules(
    scripted: Any,
    seed: int,
    lengths: list[int],
    parts: list[Any],
    unknown: bool,
    **chosen: Any,
) -> None:
    config = DecodingConfig(beam=250, patience=99.0, max_ratio=1.0, max_extra=1, **chosen)
    model = scripted(seed, V)
    rules = [made(each) for each in parts[: len(lengths)]]
    found = search(
        model,
        encode(model, lengths),
        config=config,
        n_best=4,
        rules=rules,
        allow_unknown=unknown,
    )
    every = Exhaustive(model.script, config)
    for number, (length, hypotheses) in enumerate(zip(lengths, found, strict=True)):
        best = every.best(11 + number, length, rules[number], unknown)[:4]
        assert hypotheses
        if best:
            assert [h.ids for h in hypotheses] == [ids for *_, ids in best]
            assert [(h.score, h.log_probability) for h in hypotheses] == [
                pytest.approx((score, own), abs=1e-4) for score, own, _ in best
            ]


@FEW
@given(
    seed=st.integers(0, 10**6),
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    parts=st.lists(PARTS, min_size=4, max_size=4),
    no_repeat_ngram=st.integers(0, 3),
    repetition_penalty=st.sampled_from([1.0, 1.7]),
    min_ratio=st.sampled_from([0.0, 1.0]),
)
def test_a_beam_of_one_is_greedy_search_within_the_rules(
    scripted: Any, seed: int, lengths: list[int], parts: list[Any], **chosen: Any
) -> None:
    config = DecodingConfig(beam=1, max_ratio=1.0, max_extra=1, **chosen)
    model = scripted(seed, V)
    encoded = encode(model, lengths, width=9)
    rules = [made(each) for each in parts[: len(lengths)]]
    limits = max_lengths(encoded.allowed, config)
    one = beam_search(
        model,
        encoded,
        beam=1,
        max_lengths=limits,
        length_penalty=1.0,
        competition=competition(config, rules, encoded.allowed.sum(1), limits, eager=True),
    )
    assert search(model, encoded, config=config, rules=rules) == one


@FEW
@given(
    seed=st.integers(0, 10**6),
    beam=st.integers(1, 6),
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    required=st.lists(st.lists(PHRASE, min_size=1, max_size=3).map(tuple), min_size=3, max_size=3),
    prefix=st.lists(PIECE, max_size=1).map(tuple),
    method=st.sampled_from(["beam", "diverse", "sampling"]),
)
def test_a_required_phrase_that_fits_is_there_however_narrow_the_beam(
    scripted: Any,
    seed: int,
    beam: int,
    lengths: list[int],
    required: list[tuple[Ids, ...]],
    prefix: Ids,
    method: str,
) -> None:
    """Whatever the script prefers: it nearly forbids the phrases' pieces."""
    config = DecodingConfig(beam=beam, max_ratio=1.0, max_extra=1)
    model = scripted(seed, V)
    rules = [Rules(prefix, phrases) for phrases in required[: len(lengths)]]
    found = search(
        model,
        encode(model, lengths, width=5),
        config=config,
        method={"beam": Beam(), "diverse": DiverseBeam(beam), "sampling": Sampling()}[method],
        n_best=beam,
        rules=rules,
        keys=range(len(lengths)),
    )
    every = Exhaustive(model.script, config)
    for length, rule, hypotheses in zip(lengths, rules, found, strict=True):
        possible = set(every.possible(every.limit(length), rule))
        assert hypotheses
        for h in hypotheses:
            assert possible.isdisjoint(rule.missing(h.ids))
            assert h.ids[: len(prefix)] == prefix[: len(h.ids)]


def test_a_phrase_is_said_where_it_costs_least(scripted: Any) -> None:
    """Piece 6 is cheap after 4 and nowhere else; a narrow beam finds the place."""

    def script(sentence: int, said: Ids) -> list[float]:
        ready = said[-1:] == (4,)
        return [0, 0, 0, 6.0 if len(said) >= 4 else -9.0, 0, 5.0, 4.0 if ready else -9.0]

    model = scripted(script, V)
    config = DecodingConfig(beam=3, max_ratio=1.0, max_extra=7)
    found = search(model, encode(model, [1]), config=config, rules=[Rules(required=((6,),))])
    ids = found[0][0].ids
    assert ids[ids.index(6) - 1] == 4


@pytest.mark.parametrize("method", [Beam(), DiverseBeam(1), Sampling(temperature=0.1)])
def test_one_hypothesis_alone_does_not_wait_with_a_phrase(scripted: Any, method: Method) -> None:
    """It would end after 4; a phrase that it comes to begin is said to its end."""

    def script(sentence: int, said: Ids) -> list[float]:
        return [0, 0, 0, 9.0 if len(said) >= 1 else -9.0, 5.0 if not said else 1.0, -1.0, -2.0]

    model = scripted(script, V)
    config = DecodingConfig(beam=1, max_ratio=1.0, max_extra=9)
    for phrases, expected in (
        (((5, 6),), (4, 5, 6)),
        (((4, 6),), (4, 6)),
        (((5,), (6,)), (4, 5, 6)),
    ):
        rules = [Rules(required=phrases)]
        found = search(
            model, encode(model, [2]), config=config, rules=rules, method=method, keys=[1]
        )
        assert found[0][0].ids == expected


def test_what_does_not_fit_is_told_by_the_rules(scripted: Any) -> None:
    model = scripted(1, V)
    rules = Rules(required=((4, 5, 6, 4, 5, 6), (6,)))
    config = DecodingConfig(beam=3, max_ratio=1.0, max_extra=2)
    found = search(model, encode(model, [3]), config=config, rules=[rules])
    assert rules.missing(found[0][0].ids) == ((4, 5, 6, 4, 5, 6),)


def test_a_prefix_as_long_as_the_limit_is_cut(scripted: Any) -> None:
    model = scripted(1, V)
    config = DecodingConfig(beam=2, max_ratio=1.0, max_extra=1)
    found = search(model, encode(model, [1]), config=config, rules=[Rules((4, 5, 6))])
    assert (found[0][0].ids, found[0][0].finished) == ((4, 5), False)


def test_an_unknown_piece_in_a_prefix_is_said(scripted: Any) -> None:
    model = scripted(1, V)
    config = DecodingConfig(beam=2)
    found = search(model, encode(model, [3]), config=config, rules=[Rules((5, UNK, 4))])
    assert found[0][0].ids[:3] == (5, UNK, 4)
    with pytest.raises(ConfigError, match="unknown piece"):
        search(model, encode(model, [3]), config=config, rules=[Rules(required=((UNK,),))])


def test_rules_without_a_way_out_end_the_translation(scripted: Any) -> None:
    model = scripted(1, V)
    config = DecodingConfig(beam=2, min_ratio=2.0, max_ratio=2.0)
    rules = [Rules(forbidden=((4,), (5,), (6,)))]
    for beam in (1, 2):
        config.beam = beam
        found = search(model, encode(model, [3]), config=config, rules=rules)
        assert (found[0][0].ids, found[0][0].finished) == ((), True)
    drawn = search(
        model, encode(model, [3]), config=config, rules=rules, method=Sampling(), keys=[1]
    )
    assert drawn[0][0].ids == ()


# Directions.


def wide(scripted: Any, n_best: int = 1, **chosen: Any) -> list[list[Hypothesis]]:
    model = scripted(5, V)
    config = DecodingConfig(beam=250, patience=99.0, max_ratio=1.0, max_extra=1, **chosen)
    return search(model, encode(model, [3] * 20), config=config, n_best=n_best)


def test_a_greater_length_penalty_makes_no_translation_shorter(scripted: Any) -> None:
    lengths = [
        [len(found[0].ids) for found in wide(scripted, length_penalty=penalty)]
        for penalty in (0.0, 0.5, 1.0, 2.0)
    ]
    for shorter, longer in pairwise(lengths):
        assert all(a <= b for a, b in zip(shorter, longer, strict=True))
    assert sum(lengths[0]) < sum(lengths[-1])


def test_a_greater_coverage_penalty_leaves_no_more_uncovered(scripted: Any) -> None:
    every = Exhaustive(None, DecodingConfig())
    covered = [
        [
            every.coverage((*found[0].ids, EOS), 3)
            for found in wide(scripted, coverage_penalty=weight)
        ]
        for weight in (0.0, 0.2, 1.0, 5.0)
    ]
    for less, more in pairwise(covered):
        assert all(a <= b + 1e-9 for a, b in zip(less, more, strict=True))
    assert sum(covered[0]) < sum(covered[-1])


def test_a_greater_repetition_penalty_repeats_less(scripted: Any) -> None:
    model = scripted(3, 9)
    repeated = []
    for penalty in (1.0, 1.5, 4.0):
        config = DecodingConfig(beam=1, max_extra=8, repetition_penalty=penalty)
        found = search(model, encode(model, [3] * 40), config=config)
        repeated.append(sum(len(h[0].ids) - len(set(h[0].ids)) for h in found))
    assert repeated[0] > repeated[1] > repeated[2]


# Both real models.

METHODS: dict[str, tuple[Method, int]] = {
    "greedy": (Beam(), 1),
    "beam": (Beam(), 4),
    "diverse": (DiverseBeam(2, 0.7), 4),
    "sampling": (Sampling(temperature=0.8, top_k=9, top_p=0.95, seed=3), 3),
}
ALL_RULES = [
    Rules(prefix=(7, 9), required=((5, 6),), forbidden=((8,), (10, 11))),
    Rules(),
    Rules(required=((12, 13, 14), (14, 15))),
    Rules(prefix=(20,)),
    Rules(forbidden=tuple((piece,) for piece in range(4, 16))),
    Rules(prefix=(4,), required=((4, 4),)),
    Rules(required=((28,),), forbidden=((27, 28),)),
]


@pytest.mark.parametrize("method", METHODS)
def test_neighbours_and_order_change_nothing(
    real: TranslationModel[Any], sentences: tuple[Tensor, Tensor], method: str
) -> None:
    source, allowed = sentences
    how, beam = METHODS[method]
    config = DecodingConfig(
        beam=beam,
        max_ratio=1.0,
        max_extra=3,
        coverage_penalty=0.2,
        min_ratio=0.5,
        no_repeat_ngram=2,
    )
    real.output.silence[EOS] = 3.0

    def translations(rows: list[int], width: int) -> list[list[Hypothesis]]:
        return search(
            real,
            real.encode(source[rows, :width], allowed[rows, :width]),
            config=config,
            method=how,
            n_best=beam,
            rules=[ALL_RULES[row] for row in rows],
            keys=[100 + row for row in rows],
        )

    def same(left: list[Hypothesis], right: list[Hypothesis]) -> bool:
        return [(h.ids, h.finished) for h in left] == [(h.ids, h.finished) for h in right] and [
            (h.score, h.log_probability) for h in left
        ] == [pytest.approx((h.score, h.log_probability), abs=1e-4) for h in right]

    together = translations(list(range(7)), 11)
    order = [6, 2, 0, 5, 3, 1, 4]
    for place, hypotheses in zip(order, translations(order, 11), strict=True):
        assert same(hypotheses, together[place])
    for place in (0, 2, 4, 6):
        assert same(translations([place], int(allowed[place].sum()))[0], together[place])


@pytest.mark.parametrize("method", METHODS)
def test_log_probability_is_the_models_own_whatever_ranks(
    real: TranslationModel[Any], sentences: tuple[Tensor, Tensor], method: str
) -> None:
    source, allowed = sentences
    how, beam = METHODS[method]
    real.output.silence[EOS] = 3.0
    config = DecodingConfig(
        beam=beam, coverage_penalty=0.3, repetition_penalty=1.4, no_repeat_ngram=3, max_extra=3
    )
    found = search(
        real,
        real.encode(source, allowed),
        config=config,
        method=how,
        n_best=beam,
        rules=ALL_RULES,
        keys=range(7),
    )
    for row, hypotheses in enumerate(found):
        width = int(allowed[row].sum())
        for h in hypotheses:
            target = torch.tensor([[BOS, *h.ids]])
            with torch.no_grad():
                logits = real(source[row : row + 1, :width], allowed[row : row + 1, :width], target)
            labels = torch.tensor([*h.ids, EOS][: len(h.ids) + h.finished]).unsqueeze(1)
            total = logits[0, : len(labels)].log_softmax(-1).gather(1, labels).sum()
            assert h.log_probability == pytest.approx(float(total), abs=1e-4)


def test_refuses_what_makes_no_sense(scripted: Any) -> None:
    model = scripted(1, V)
    encoded = encode(model, [1])
    config = DecodingConfig(beam=4)
    with pytest.raises(ConfigError, match="n-best list of 5"):
        search(model, encoded, config=config, n_best=5)
    with pytest.raises(ConfigError, match="3 groups"):
        search(model, encoded, config=config, method=DiverseBeam(3))
    with pytest.raises(ConfigError, match="0 groups"):
        DiverseBeam(0)
    with pytest.raises(ConfigError, match="strength"):
        DiverseBeam(2, -1.0)
    with pytest.raises(ValueError, match="key"):
        search(model, encoded, config=config, method=Sampling())
