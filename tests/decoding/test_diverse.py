"""The diverse beam against one that is written out, and its limits."""

import math
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kakehashi.decoding.beam import beam_search
from kakehashi.decoding.competition import Competition
from kakehashi.decoding.config import DecodingConfig
from kakehashi.decoding.methods import Beam, DiverseBeam
from kakehashi.decoding.search import search
from kakehashi.symbols import EOS

FEW = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
V = 9


def encode(model: Any, count: int) -> Any:
    source = torch.arange(11, 11 + count).unsqueeze(1)
    return model.encode(source, torch.ones_like(source, dtype=torch.bool))


def written_out(
    script: Any,
    sentence: int,
    limit: int,
    groups: int,
    width: int,
    strength: float,
    patience: float,
) -> list[list[tuple[float, tuple[int, ...]]]]:
    """The finished hypotheses of each group, best first; all go on until all are through."""
    wanted = math.floor(width * patience + 0.5) if width > 1 else 1
    live: list[list[tuple[float, tuple[int, ...]]]] = [[(0.0, ())] for _ in range(groups)]
    finished: list[list[tuple[float, tuple[int, ...]]]] = [[] for _ in range(groups)]
    for length in range(1, limit + 1):
        said: list[int] = []
        for group in range(groups):
            extended = [
                (total + float(log_softmax[piece]), (*ids, piece))
                for total, ids in live[group]
                for log_softmax in [torch.tensor(script(sentence, ids)).double().log_softmax(-1)]
                for piece in range(EOS, V)
            ]
            extended.sort(key=lambda e: e[0] - strength * said.count(e[1][-1]), reverse=True)
            ended = [(t, ids) for t, ids in extended[:width] if ids[-1] == EOS]
            live[group] = [(t, ids) for t, ids in extended if ids[-1] != EOS][:width]
            said = said + [ids[-1] for _, ids in (*ended, *live[group])]
            finished[group] += [(t / length, ids[:-1]) for t, ids in ended]
            if len(finished[group]) >= wanted:
                live[group] = []
    return [sorted(group, reverse=True) for group in finished]


@FEW
@given(
    seed=st.integers(0, 10**6),
    shape=st.sampled_from([(2, 1), (2, 2), (3, 2)]),
    strength=st.sampled_from([0.0, 0.4, 3.0]),
    patience=st.sampled_from([1.0, 2.0]),
)
def test_equals_the_search_that_is_written_out(
    scripted: Any, seed: int, shape: tuple[int, int], strength: float, patience: float
) -> None:
    groups, width = shape
    model = scripted(seed, V)
    beam = groups * width
    config = DecodingConfig(beam=beam, patience=patience, max_ratio=1.0, max_extra=4)
    method = DiverseBeam(groups, strength)
    found = search(model, encode(model, 2), config=config, method=method, n_best=beam)
    for sentence, hypotheses in zip((11, 12), found, strict=True):
        lists = written_out(model.script, sentence, 5, groups, width, strength, patience)
        expected = {}
        for turn in range(width):
            for group in lists:
                for score, ids in group[turn : turn + 1]:
                    expected.setdefault(ids, score)
        if not expected:
            assert not any(h.finished for h in hypotheses)
            continue
        assert {h.ids: h.score for h in hypotheses} == pytest.approx(expected, abs=1e-5)
        assert [h.score for h in hypotheses] == sorted(expected.values(), reverse=True) or (
            [h.score for h in hypotheses]
            == pytest.approx(sorted(expected.values(), reverse=True), abs=1e-5)
        )


def test_one_group_is_a_plain_beam(scripted: Any) -> None:
    config = DecodingConfig(beam=4, max_extra=6)
    for seed in range(2):
        model = scripted(seed, V)
        encoded = encode(model, 3)
        plain = search(model, encoded, config=config, method=Beam(), n_best=4)
        assert search(model, encoded, config=config, method=DiverseBeam(1, 0.0), n_best=4) == plain
        # And so it is on the path on which groups and rules work.
        ruled = beam_search(
            model,
            encoded,
            beam=4,
            max_lengths=torch.full((3,), 8),
            length_penalty=1.0,
            n_best=4,
            competition=Competition((0, 1, 2), 1.0, (), None, None),
        )
        assert ruled == plain


@pytest.mark.slow
def test_more_strength_says_more_different_things(scripted: Any) -> None:
    firsts = []
    for strength in (0.0, 1.0, 10.0):
        different = 0
        for seed in range(4):
            model = scripted(seed, V)
            config = DecodingConfig(beam=4, max_extra=6)
            found = search(
                model,
                encode(model, 3),
                config=config,
                method=DiverseBeam(4, strength),
                n_best=4,
            )
            different += sum(len({h.ids[:1] for h in hypotheses}) for hypotheses in found)
        firsts.append(different)
    assert firsts[0] < firsts[1] < firsts[2]
