"""The proof passes for what is the same, and for nothing else."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.inference.export.conftest import Make

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.decoding.hypothesis import Hypothesis
from kakehashi.errors import BundleError, ExportError
from kakehashi.inference.engine import Followed, Row
from kakehashi.inference.export import run
from kakehashi.inference.export.check_set import CheckSet, drawn_check_set
from kakehashi.inference.export.proof import prove_alike, prove_exact
from kakehashi.inference.options import Options
from kakehashi.inference.translator import Translator


class Scripted:
    """An engine that says what it was told, at prices that it was told."""

    name = "scripted"

    def __init__(self, greedy: Row, beam: Row, prices: dict[tuple[int, ...], list[float]]) -> None:
        self.said, self.prices = {1: greedy, 4: beam}, prices

    def search(
        self, rows: Sequence[Row], *, config: DecodingConfig, **_: Any
    ) -> list[list[Hypothesis]]:
        return [[Hypothesis(tuple(self.said[config.beam]), 0.0, 0.0, True)] for _ in rows]

    def follow(self, rows: Sequence[Row], targets: Sequence[Row], **_: Any) -> list[Followed]:
        return [Followed(tuple(self.prices[tuple(target)])) for target in targets]


DECODING = DecodingConfig(beam=4)
PRICES = {(5, 6): [-1.0, -1.0, -0.1], (5, 7): [-1.0, -1.000005, -0.9], (5,): [-1.0, -3.0]}


def other_prices(by: float) -> dict[tuple[int, ...], list[float]]:
    return {ids: [one + by for one in prices] for ids, prices in PRICES.items()}


def test_a_tie_is_no_difference() -> None:
    ours, theirs = Scripted([5, 6], [5, 6], PRICES), Scripted([5, 7], [5, 6], other_prices(1e-5))
    proof = prove_exact(ours, theirs, [[9]], DECODING)
    assert (proof.lines, proof.greedy_identical, proof.greedy_ties) == (1, 0, 1)
    assert (proof.identical, proof.ties) == (1, 0)
    assert proof.score_difference == pytest.approx(1e-5)


def test_a_tie_is_one_for_both_models() -> None:
    other = PRICES | {(5, 7): [-1.0, -1.00009, -0.9]}
    ours, theirs = Scripted([5, 6], [5, 6], PRICES), Scripted([5, 7], [5, 6], other)
    with pytest.raises(ExportError, match=r"line 1 .* 9\.0e-05"):
        prove_exact(ours, theirs, [[9]], DECODING)


def test_another_piece_that_is_no_tie_is_one() -> None:
    ours, theirs = Scripted([5, 6], [5, 6], PRICES), Scripted([5], [5, 6], PRICES)
    with pytest.raises(ExportError, match=r"line 1 .* 2\.0e\+00"):
        prove_exact(ours, theirs, [[9]], DECODING)


def test_another_text_of_the_beam_passes_only_at_a_tie_of_both_models() -> None:
    ours = Scripted([5, 6], [5, 6], PRICES)
    with pytest.raises(ExportError, match=r"line 1 .* -2\.000000, .* -0\.700000"):
        prove_exact(ours, Scripted([5, 6], [5], PRICES), [[9]], DECODING)
    prices = PRICES | {(5,): [-0.7, -0.70001]}
    ours, theirs = Scripted([5, 6], [5, 6], prices), Scripted([5, 6], [5], prices)
    proof = prove_exact(ours, theirs, [[9]], DECODING)
    assert (proof.identical, proof.ties) == (0, 1)
    theirs.prices = prices | {(5,): [-0.7, -0.70005]}
    with pytest.raises(ExportError, match=r"line 1 .* -0\.700025, .* -0\.700000"):
        prove_exact(ours, theirs, [[9]], DECODING)


def test_lines_are_numbered_as_in_the_check_set() -> None:
    ours, theirs = Scripted([5, 6], [5, 6], PRICES), Scripted([5], [5, 6], PRICES)
    with pytest.raises(ExportError, match=r"line 3 of the check set"):
        prove_exact(ours, theirs, [[9]], DECODING, [3])


def test_the_same_text_at_other_scores_is_not_the_same() -> None:
    prices = PRICES | {(5, 6): [-1.0, -1.001, -0.1]}
    ours, theirs = Scripted([5, 6], [5, 6], PRICES), Scripted([5, 6], [5, 6], prices)
    with pytest.raises(ExportError, match=r"line 1 .* -0\.700333"):
        prove_exact(ours, theirs, [[9]], DECODING)


def test_not_a_number_is_not_the_same() -> None:
    prices = {ids: [float("nan")] * len(each) for ids, each in PRICES.items()}
    with pytest.raises(ExportError):
        prove_exact(Scripted([5], [5], PRICES), Scripted([5], [5], prices), [[9]], DECODING)


def test_bleu_decides_on_eight_bits(tokenizer: Tokenizer) -> None:
    good, bad = (tokenizer.encode(text) for text in ("the old dog is here now", "we"))
    prices = {tuple(good): [-0.5] * (len(good) + 1)}
    worse = {ids: [-0.61] * len(each) for ids, each in prices.items()}
    ours, same = Scripted([], good, prices), Scripted([], good, prices)
    other = Scripted([], bad, worse)
    reference = CheckSet("given", ["x"], ["the old dog is here"])
    rest = [[9]], DECODING, tokenizer
    proof = prove_alike(ours, same, *rest, reference, "en")
    assert proof.original is not None and proof.bleu.value == proof.original.value
    with pytest.raises(ExportError, match=r"they may differ by 0\.3 \(nrefs:1"):
        prove_alike(ours, other, *rest, reference, "en")
    with pytest.raises(ExportError, match=r"loses 0\.110 of log probability"):
        prove_alike(ours, other, *rest, CheckSet("given", ["x"]), "en")
    assert prove_alike(ours, same, *rest, CheckSet("given", ["x"]), "en").loss == 0


def test_the_drawn_lines_are_of_all_lengths_and_always_the_same(tokenizer: Tokenizer) -> None:
    check = drawn_check_set(tokenizer, 30)
    lengths = [len(row) for row in tokenizer.encode_batch(check.source)]
    assert min(lengths) == 1 and max(lengths) > 45
    assert sum(length < 30 for length in lengths) > 90
    assert check == drawn_check_set(tokenizer, 30)
    assert not any("\n" in line for line in check.source)


@pytest.fixture
def model(tmp_path: Path, make: Make, save_model: Callable[..., Path]) -> Path:
    return save_model(tmp_path / "a model", make())


@pytest.fixture
def lines(small_corpus: Any) -> Callable[[], CheckSet]:
    return lambda: CheckSet("lines", [*small_corpus.source[:9], "", *small_corpus.source[:2]])


def test_an_export_is_proven_recorded_and_used(
    model: Path, lines: Callable[[], CheckSet], small_corpus: Any
) -> None:
    report = run.export_model(model, model / "ctranslate2", to="ctranslate2", check=lines)
    assert "greedy search: the same text on 11 of 11 lines" in report
    record = json.loads((model / "ctranslate2" / "export.json").read_text())
    assert record["proof"]["lines"] == 11 and record["proof"]["score_difference"] < 1e-5
    config = json.loads((model / "config.json").read_text())
    assert record["source"]["weights_sha256"] == config["weights_sha256"]
    card = (model / "ctranslate2" / "README.md").read_text()
    assert "library_name: ctranslate2" in card and "Old words" not in card and "# A card" in card
    ours, theirs = Translator.load(model), Translator.load(model, engine="ctranslate2")
    greedy = Options(beam=1)
    found = [one.translate(small_corpus.source[:9], greedy) for one in (ours, theirs)]
    assert [t.text for t in found[0]] == [t.text for t in found[1]]
    assert [t.score for t in found[0]] == pytest.approx([t.score for t in found[1]], abs=1e-5)


@pytest.mark.parametrize("to", ["ctranslate2", pytest.param("huggingface", marks=pytest.mark.slow)])
def test_one_changed_weight_is_found_and_nothing_is_left(
    to: str, model: Path, lines: Callable[[], CheckSet], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = getattr(run, f"write_{to}")

    def write_changed(folder: Path, model: Any, *rest: Any, **options: Any) -> None:
        with torch.no_grad():
            weight = model.decoder[1].cross_attention.value.weight
            kept = weight.clone()
            weight[2, 3] += 0.3
            write(folder, model, *rest, **options)
            weight.copy_(kept)

    monkeypatch.setattr(run, f"write_{to}", write_changed)
    with pytest.raises(ExportError, match="is not the same"):
        run.export_model(model, model.parent / "out", to=to, check=lines)
    assert [path.name for path in model.parent.iterdir()] == ["a model"]


def test_a_place_that_is_taken_is_left_alone(model: Path) -> None:
    before = sorted(path.name for path in model.iterdir())
    with pytest.raises(BundleError, match="exists already"):
        run.export_model(model, model, to="ctranslate2")
    assert sorted(path.name for path in model.iterdir()) == before


def test_eight_bits_take_a_quarter_and_say_their_bleu(
    model: Path, small_corpus: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [t.text for t in Translator.load(model).translate(small_corpus.source[:40])]
    check = CheckSet("lines", small_corpus.source[:40], wanted)
    monkeypatch.setattr("kakehashi.inference.export.proof.BLEU_ROOM", 100.0)
    report = run.export_model(
        model, model / "small", to="ctranslate2", quantization="int8", check=lambda: check
    )
    assert "exported: BLEU" in report and "original: BLEU" in report and "version:" in report
    assert "loses 0." in report
    whole = (model / "model.safetensors").stat().st_size
    table = 4 * 4096 * 24  # of positions, in full
    assert (model / "small" / "model.bin").stat().st_size - table < 0.4 * whole
