"""The CTranslate2 engine means by every setting what the torch engine means by it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.inference.export.conftest import Make

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.decoding.hypothesis import Hypothesis
from kakehashi.decoding.methods import DiverseBeam, Sampling
from kakehashi.decoding.rules import Rules
from kakehashi.errors import BundleError, ConfigError, DataError
from kakehashi.inference.ctranslate2_engine import CTranslate2Engine
from kakehashi.inference.engine import Engine
from kakehashi.inference.export.to_ctranslate2 import write_ctranslate2
from kakehashi.inference.exported import load_exported
from kakehashi.inference.torch_engine import TorchEngine
from kakehashi.symbols import BOS, PAD, UNK

POSITIONS = 40
Rows = list[list[int]]


@pytest.fixture(scope="module")
def engines(
    make: Make, tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Engine, Engine]:
    folder = tmp_path_factory.mktemp("export")
    model = make(norm_position="post", bias=True)
    write_ctranslate2(folder, model, tokenizer, quantization="float32", positions=POSITIONS)
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    exported = CTranslate2Engine(folder, pieces, positions=POSITIONS, silenced=True)
    return TorchEngine(model), exported


@pytest.fixture(scope="module")
def rows(tokenizer: Tokenizer, small_corpus: Any) -> Rows:
    lines = small_corpus.source[:9]
    return tokenizer.encode_batch(["a", *lines])


def assert_same(ours: list[list[Hypothesis]], theirs: list[list[Hypothesis]]) -> None:
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert [h.ids for h in a] == [h.ids for h in b]
        assert [h.finished for h in a] == [h.finished for h in b]
        for value in ("score", "log_probability"):
            expected = [getattr(h, value) for h in a]
            assert [getattr(h, value) for h in b] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"length_penalty": 0.0},
        {"min_ratio": 0.4},
        {"no_repeat_ngram": 2},
        {"repetition_penalty": 1.4},
    ],
    ids=str,
)
def test_a_setting_means_the_same(
    settings: dict[str, Any], engines: tuple[Engine, Engine], rows: Rows
) -> None:
    config = DecodingConfig(**({"beam": 1, "max_ratio": 0.4, "max_extra": 5} | settings))
    ours, theirs = (engine.search(rows, config=config) for engine in engines)
    assert_same(ours, theirs)
    assert len({h[0].ids for h in ours}) > 3


def test_coverage_is_counted_in_the_score(engines: tuple[Engine, Engine], rows: Rows) -> None:
    original, exported = engines
    config = DecodingConfig(beam=3, coverage_penalty=0.3, max_ratio=0.4, max_extra=4)
    for row, best in zip(rows, exported.search(rows, config=config, n_best=2), strict=True):
        read = original.follow([row] * len(best), [h.ids for h in best], attending=True)
        for h, one in zip(best, read, strict=True):
            assert one.attention is not None
            steps = len(h.ids) + h.finished
            attended = np.minimum(one.attention[:steps].sum(0), 1.0)
            total = sum(one.log_probabilities[:steps])
            assert h.log_probability == pytest.approx(total, abs=1e-4)
            assert h.score == pytest.approx(total / steps + 0.3 * np.log(attended).sum(), abs=1e-4)


@pytest.mark.parametrize(
    "settings",
    [{}, {"repetition_penalty": 1.4}],
    ids=str,
)
def test_greedy_search_has_coverage_in_its_score(
    settings: dict[str, Any], engines: tuple[Engine, Engine], rows: Rows
) -> None:
    """CTranslate2 itself crashes on it."""
    config = DecodingConfig(
        **({"beam": 1, "coverage_penalty": 0.5, "max_ratio": 0.4, "max_extra": 5} | settings)
    )
    assert_same(*(engine.search(rows, config=config) for engine in engines))
    prefixes = [Rules(prefix=tuple(row[:2])) for row in rows]
    if config.repetition_penalty == 1:
        assert_same(*(engine.search(rows, config=config, rules=prefixes) for engine in engines))


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"min_ratio": 0.2}, Rules()),
        ({"no_repeat_ngram": 2}, Rules()),
        ({}, Rules(prefix=(9, 10))),
        ({}, Rules(forbidden=((9, 10),))),
    ],
    ids=str,
)
def test_a_repetition_penalty_refuses_what_would_have_other_scores(
    settings: dict[str, Any], rule: Rules, engines: tuple[Engine, Engine]
) -> None:
    config = DecodingConfig(**({"beam": 1, "repetition_penalty": 1.5} | settings))
    with pytest.raises(ConfigError, match=r"repetition penalty together with .* --engine torch"):
        engines[1].search([[9]], config=config, rules=[rule])


@pytest.mark.parametrize("coverage", [0.0, 0.5])
def test_a_beam_ranks_the_whole_translation_after_a_prefix(
    coverage: float, engines: tuple[Engine, Engine], rows: Rows
) -> None:
    """CTranslate2 itself ranks what stands after it.

    (It lets a translation end right after a prefix only if nothing is more probable, so the beams
    of the two engines cannot be compared with a model that is as eager to end as this one.)
    """
    original, exported = engines
    config = DecodingConfig(beam=4, max_ratio=0.4, max_extra=9, coverage_penalty=coverage)
    rules = [Rules(prefix=tuple(row[:2])) for row in rows]
    every, best = (exported.search(rows, config=config, rules=rules, n_best=n) for n in (4, 1))
    assert_same([found[:1] for found in every], best)
    for row, found in zip(rows, every, strict=True):
        read = original.follow([row] * len(found), [h.ids for h in found], attending=True)
        for h, one in zip(found, read, strict=True):
            assert one.attention is not None
            steps = len(h.ids) + h.finished
            attended = np.minimum(one.attention[:steps].sum(0), 1.0)
            score = sum(one.log_probabilities[:steps]) / steps + coverage * np.log(attended).sum()
            assert h.score == pytest.approx(score, abs=1e-4)


@pytest.mark.parametrize(
    "patience", [1.0, *(pytest.param(p, marks=pytest.mark.slow) for p in (1.5, 3.0))]
)
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
@pytest.mark.parametrize("room", [1, 9])
def test_the_beams_are_the_same(
    patience: float, length_penalty: float, room: int, engines: tuple[Engine, Engine], rows: Rows
) -> None:
    """With their n-best lists, and where they come to the limit."""
    config = DecodingConfig(
        beam=4,
        patience=patience,
        length_penalty=length_penalty,
        max_ratio=0.2,
        max_extra=room,
    )
    for n_best in (1, 2, 4):
        ours, theirs = (e.search(rows, config=config, n_best=n_best) for e in engines)
        assert_same(ours, theirs)


class Recorder:
    """What CTranslate2 was asked."""

    def __init__(self, translator: Any) -> None:
        self.translator, self.asked = translator, dict[str, Any]()

    def translate_batch(self, *given: Any, **asked: Any) -> Any:
        self.asked = asked
        return self.translator.translate_batch(*given, **asked)


def test_a_list_without_a_length_penalty_is_not_cut_short(
    engines: tuple[Engine, Engine], rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a penalty of 0 CTranslate2 is through once the best has ended, with any second."""
    exported: Any = engines[1]
    recorder = Recorder(exported._translator)
    monkeypatch.setattr(exported, "_translator", recorder)
    config = DecodingConfig(beam=4, length_penalty=0.0, max_extra=4, max_ratio=0.1)
    exported.search(rows[:1], config=config, n_best=1)
    exported.search(rows[:1], config=replace(config, max_extra=20), n_best=2)
    assert recorder.asked["length_penalty"] != 0
    assert np.float32(4096) ** np.float32(recorder.asked["length_penalty"]) == 1


def test_an_n_best_list_is_one_of_its_own_sentence(
    engines: tuple[Engine, Engine], rows: Rows
) -> None:
    """What the beam says is scored as the original scores it, best first."""
    original, exported = engines
    config = DecodingConfig(beam=4, max_ratio=0.4, max_extra=4)
    for row, best in zip(rows, exported.search(rows, config=config, n_best=3), strict=True):
        assert 1 <= len(best) <= 3 and len({h.ids for h in best}) == len(best)
        assert [h.score for h in best] == sorted((h.score for h in best), reverse=True)
        read = original.follow([row] * len(best), [h.ids for h in best])
        for h, one in zip(best, read, strict=True):
            steps = len(h.ids) + h.finished
            total = sum(one.log_probabilities[:steps])
            assert h.log_probability == pytest.approx(total, abs=1e-4)
            assert h.score == pytest.approx(total / steps, abs=1e-4)


def test_the_neighbours_change_nothing(engines: tuple[Engine, Engine], rows: Rows) -> None:
    exported = engines[1]
    config = DecodingConfig(beam=3, max_ratio=0.6, max_extra=1, min_ratio=0.2)
    together = exported.search(rows, config=config, n_best=2)
    alone = [exported.search([row], config=config, n_best=2)[0] for row in rows]
    assert_same(alone, together)


def test_rules_hold_and_mean_the_same(engines: tuple[Engine, Engine], rows: Rows) -> None:
    config = DecodingConfig(beam=1, max_ratio=0.4, max_extra=5)
    free = [h[0].ids for h in engines[0].search(rows, config=config)]
    chosen = [i for i, ids in enumerate(free) if len(ids) > 2]
    rows, free = [rows[i] for i in chosen], [free[i] for i in chosen]
    assert len(rows) > 3
    rules = [Rules(prefix=free[2][:2]), *(Rules(forbidden=(ids[:2],)) for ids in free[1:])]
    ours, theirs = (engine.search(rows, config=config, rules=rules) for engine in engines)
    assert_same(ours, theirs)
    assert theirs[0][0].ids[:2] == free[2][:2]
    assert all(h[0].ids[:2] != ids[:2] for h, ids in zip(theirs[1:], free[1:], strict=True))


def test_what_it_cannot_do_is_refused_by_name(engines: tuple[Engine, Engine], rows: Rows) -> None:
    search, config = engines[1].search, DecodingConfig(beam=2)
    with pytest.raises(ConfigError, match=r"no diverse beam.*--engine torch"):
        search(rows, config=config, method=DiverseBeam(2))
    with pytest.raises(ConfigError, match=r"samples twice from a seed.*--engine torch"):
        search(rows, config=config, method=Sampling())
    with pytest.raises(ConfigError, match=r"no required phrases.*--engine torch"):
        search(rows[:1], config=config, rules=[Rules(required=((9,),))])
    with pytest.raises(DataError, match=f"41 pieces long.* {POSITIONS}: use --engine torch"):
        search([[9] * POSITIONS], config=DecodingConfig(max_ratio=0.1))
    with pytest.raises(DataError, match="positions"):
        engines[1].follow([[9]], [[9] * POSITIONS])


def test_nothing_becomes_nothing(engines: tuple[Engine, Engine]) -> None:
    original, exported = engines
    best = exported.search([[], [9, 10]], config=DecodingConfig(beam=2, max_extra=3))[0][0]
    expected = original.follow([[]], [[]])[0].log_probabilities
    assert (best.ids, best.finished) == ((), True)
    assert best.log_probability == pytest.approx(sum(expected), abs=1e-4)


def test_reserved_pieces_are_never_said(
    make: Make, tokenizer: Tokenizer, rows: Rows, tmp_path: Path
) -> None:
    model = make()
    model.output.silence[[PAD, UNK, BOS]] = 3.0
    write_ctranslate2(tmp_path, model, tokenizer, quantization="float32", positions=POSITIONS)
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    exported = CTranslate2Engine(tmp_path, pieces, positions=POSITIONS, silenced=False)
    config = DecodingConfig(beam=1, max_ratio=0.4, max_extra=4)
    assert_same(*(e.search(rows, config=config) for e in (TorchEngine(model), exported)))


def test_a_folder_that_is_no_export_or_damaged(
    make: Make, save_model: Callable[..., Path], tmp_path: Path
) -> None:
    from kakehashi.inference.export.check_set import CheckSet
    from kakehashi.inference.export.run import export_model

    model = save_model(tmp_path / "model", make(), beam=1)
    with pytest.raises(BundleError, match=r"kakehashi export .*model --to ctranslate2 -o"):
        load_exported(model)
    with pytest.raises(BundleError, match="no model folder"):
        load_exported(tmp_path / "nothing")
    folder = model / "ctranslate2"
    export_model(model, folder, to="ctranslate2", check=lambda: CheckSet("a line", ["Hund"]))
    load_exported(model)
    record = json.loads((folder / "export.json").read_text())
    for entry, wrong in (
        ("positions", "x"),
        ("silenced", 1),
        ("files", []),
        ("files", record["files"] | {"../../model/README.md": "0"}),
        ("files", {}),
    ):
        (folder / "export.json").write_text(json.dumps(record | {entry: wrong}))
        with pytest.raises(
            BundleError, match=rf"export\.json is damaged: {entry} is not .*copy the"
        ):
            load_exported(folder)
    (folder / "export.json").write_text(json.dumps(record))
    weights = bytearray((folder / "model.bin").read_bytes())
    weights[-2000] ^= 1
    (folder / "model.bin").write_bytes(weights)
    with pytest.raises(BundleError, match=r"model\.bin is damaged"):
        load_exported(folder)
    (folder / "model.bin").unlink()
    with pytest.raises(BundleError):
        load_exported(folder)
