"""Samples against the exact distribution of a scripted model, and what decides them."""

import math
from collections import Counter
from typing import Any

import pytest
import torch

from kakehashi.decoding.config import DecodingConfig
from kakehashi.decoding.hypothesis import Hypothesis
from kakehashi.decoding.methods import Sampling, sentence_key
from kakehashi.decoding.rules import Rules
from kakehashi.decoding.search import search
from kakehashi.errors import ConfigError
from kakehashi.symbols import EOS

V = 7
CONFIG = DecodingConfig(beam=1, max_ratio=1.0, max_extra=2)


def draw(
    model: Any, sampling: Sampling, draws: int, keys: list[int], **options: Any
) -> list[list[Hypothesis]]:
    """Of as many equal sentences of one piece as there are keys; at most three pieces each."""
    source = torch.full((len(keys), 1), 11)
    encoded = model.encode(source, torch.ones_like(source, dtype=torch.bool))
    return search(
        model, encoded, config=CONFIG, method=sampling, n_best=draws, keys=keys, **options
    )


def next_piece(logits: list[float], sampling: Sampling) -> dict[int, float]:
    """The probability of each piece that can be drawn, by the definitions."""
    weight = {piece: math.exp(logits[piece] / sampling.temperature) for piece in range(EOS, V)}
    ranked = sorted(weight, key=lambda piece: -weight[piece])
    if sampling.top_k:
        ranked = ranked[: sampling.top_k]
    total, kept, mass = sum(weight[piece] for piece in ranked), [], 0.0
    for piece in ranked:
        kept.append(piece)
        mass += weight[piece] / total
        if mass >= sampling.top_p:
            break
    total = sum(weight[piece] for piece in kept)
    return {piece: weight[piece] / total for piece in kept}


def distribution(
    script: Any, sampling: Sampling, said: tuple[int, ...] = ()
) -> dict[tuple[int, ...], float]:
    """The probability of every translation; EOS stands in it, unless the limit cut it."""
    if len(said) == 3 or said[-1:] == (EOS,):
        return {said: 1.0}
    return {
        ids: probability * rest
        for piece, probability in next_piece(script(11, said), sampling).items()
        for ids, rest in distribution(script, sampling, (*said, piece)).items()
    }


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(),
        Sampling(temperature=0.6),
        Sampling(temperature=1.8, seed=2),
        Sampling(top_k=2),
        Sampling(top_p=0.7),
        Sampling(temperature=1.3, top_k=3, top_p=0.9),
    ],
)
def test_translations_come_as_often_as_they_are_probable(scripted: Any, sampling: Sampling) -> None:
    """A chi-square test of 3,000 draws; each seed is fixed, so it passes always or never."""
    model = scripted(4, V)
    draws = 3000
    hypotheses = draw(model, sampling, draws, [5])[0]
    said = Counter(h.ids + (EOS,) * h.finished for h in hypotheses)
    expected = distribution(model.script, sampling)
    assert set(said) <= set(expected)
    often = {ids: p for ids, p in expected.items() if p * draws >= 5}
    cells = [(said[ids], p * draws) for ids, p in often.items()]
    rest = draws - sum(n for n, _ in cells), draws - sum(e for _, e in cells)
    if rest[1] >= 5:
        cells.append(rest)
    statistic = sum((n - e) ** 2 / e for n, e in cells)
    freedom = torch.tensor((len(cells) - 1) / 2)
    p_value = float(torch.special.gammaincc(freedom, torch.tensor(statistic / 2)))
    assert p_value > 0.01


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(top_k=1),
        Sampling(temperature=1e-6),
        Sampling(temperature=1e-300),
        Sampling(top_p=1e-9),
        Sampling(top_p=1e-300),
    ],
)
def test_at_the_edge_every_draw_is_the_greedy_one(scripted: Any, sampling: Sampling) -> None:
    for seed in range(5):
        model = scripted(seed, V)
        source = torch.tensor([[11]])
        encoded = model.encode(source, torch.ones_like(source, dtype=torch.bool))
        greedy = search(model, encoded, config=CONFIG)[0][0]
        for h in draw(model, sampling, 4, [7])[0]:
            assert h.ids == greedy.ids
            assert h.log_probability == pytest.approx(greedy.log_probability, abs=1e-5)


def test_a_draw_depends_on_seed_key_and_number_alone(scripted: Any) -> None:
    model = scripted(4, V)
    many = draw(model, Sampling(), 40, [5, 6, 2**70 + 5])
    assert draw(model, Sampling(), 7, [5])[0] == many[0][:7]
    assert draw(model, Sampling(), 40, [9, 6])[1] == many[1]
    assert many[0] != many[1]
    assert many[0] == many[2]  # a key is 64 bits
    assert draw(model, Sampling(seed=2), 40, [5])[0] != many[0]
    assert len({h.ids for h in many[0]}) > 5


def test_a_greater_temperature_strays_further(scripted: Any) -> None:
    model = scripted(4, V)
    means = []
    for temperature in (0.3, 1.0, 3.0):
        drawn = draw(model, Sampling(temperature), 300, [5])[0]
        means.append(sum(h.log_probability for h in drawn) / len(drawn))
    assert means[0] > means[1] > means[2]


def test_rules_hold_for_every_draw(scripted: Any) -> None:
    model = scripted(4, V)
    rules = Rules(required=((6,),), forbidden=((5,), (4, 4)))
    for h in draw(model, Sampling(), 50, [5], rules=[rules])[0]:
        assert 6 in h.ids
        assert 5 not in h.ids
        assert (4, 4) not in zip(h.ids, h.ids[1:], strict=False)


def test_the_key_of_a_sentence_is_its_pieces() -> None:
    keys = {sentence_key(ids) for ids in ([], [1], [11], [1, 1], [12, 3], [1, 23], [3, 12])}
    assert len(keys) == 7
    assert sentence_key([4, 5, 6]) == sentence_key((4, 5, 6))
    assert all(0 <= key < 2**63 for key in keys)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"temperature": 0.0}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_k": -1}, "top_k"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.1}, "top_p"),
    ],
)
def test_settings_out_of_range_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Sampling(**fields)
