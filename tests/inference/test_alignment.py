"""Which attention alignments are read off: step, layer and head, stored with the model."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.errors import BundleError, ConfigError, DataError
from kakehashi.inference.alignment import piece_alignment, shifted
from kakehashi.inference.bundle import load_bundle, together
from kakehashi.inference.folder import CONFIG
from kakehashi.inference.options import Options
from kakehashi.inference.storing import store_alignment
from kakehashi.inference.torch_engine import TorchEngine
from kakehashi.inference.translator import Translator
from kakehashi.models.alignment import AlignmentChoice
from kakehashi.models.interface import TranslationModel
from kakehashi.symbols import BOS, EOS

LINES = [("Der Hund schläft.", "The dog is asleep."), ("Die Katze.", "The black cat drinks.")]
CHOICES = [
    AlignmentChoice(layer, head, shift)
    for layer, head, shift in [(1, None, 0), (1, 2, 1), (2, 3, 0), (2, None, 1)]
]


def literal(
    model: TranslationModel[Any], row: list[int], target: list[int], choice: AlignmentChoice
) -> np.ndarray:
    """The attention of each target piece and EOS, from the maps of one pair, place by place."""
    source, read = torch.tensor([[*row, EOS]]), torch.tensor([[BOS, *target]])
    heads = model.attention_maps(source, source >= 0, read).cross[choice.layer - 1][0]
    steps = [
        heads.mean(0)[n] if choice.head is None else heads[choice.head - 1, n]
        for n in range(len(target) + 1)
    ]
    # step n reads [BOS, *target][n] and writes [*target, EOS][n]
    found = [steps[n + 1] if choice.shift else steps[n] for n in range(len(target))]
    return torch.stack([*found, steps[-1]]).numpy()


def test_a_shift_takes_the_row_of_the_step_after() -> None:
    steps = np.array([[0.1, 0.9], [0.2, 0.8], [0.7, 0.3]], np.float32)
    assert shifted(steps, 0).tolist() == steps.tolist()
    assert shifted(steps, 1).tolist() == steps[[1, 2, 2]].tolist()


def test_pieces_go_to_the_largest_weight_that_is_not_on_the_end() -> None:
    attention = np.array([[0.1, 0.3, 0.6], [0.2, 0.1, 0.7], [0.3, 0.3, 0.4]], np.float32)
    assert piece_alignment(attention) == ((1, 0), (0, 1))


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_what_is_chosen_is_what_is_read(
    choice: AlignmentChoice, saved: dict[str, Path], tokenizer: Tokenizer
) -> None:
    translator = Translator.load(saved["transformer"])
    translator.read_alignments_from(choice)
    engine = translator.engine
    assert isinstance(engine, TorchEngine)
    rows = tokenizer.encode_batch([source for source, _ in LINES])
    targets = tokenizer.encode_batch([target for _, target in LINES])
    read = engine.follow(rows, targets, attending=True)
    for row, target, one, links in zip(rows, targets, read, translator.align(LINES), strict=True):
        want = literal(engine.model, row, target, choice)
        assert one.attention is not None
        np.testing.assert_allclose(one.attention, want, atol=1e-5)
        assert links.alignment == piece_alignment(want)


def test_several_models_are_read_each_by_its_own_choice(saved: dict[str, Path]) -> None:
    bundles = [load_bundle(saved["transformer"]) for _ in CHOICES]
    for bundle, choice in zip(bundles, CHOICES, strict=True):
        bundle.model.alignment = choice
    row, target = bundles[0].tokenizer.encode("Der Hund."), bundles[0].tokenizer.encode("A dog.")
    (read,) = TorchEngine(together(bundles)).follow([row], [target], attending=True)
    want = [literal(b.model, row, target, c) for b, c in zip(bundles, CHOICES, strict=True)]
    assert read.attention is not None
    np.testing.assert_allclose(read.attention, np.mean(want, axis=0), atol=1e-5)
    with pytest.raises(ConfigError, match="one at a time"):
        Translator.of(*bundles).read_alignments_from(CHOICES[0])


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_the_beam_attends_as_it_is_read(choice: AlignmentChoice, saved: dict[str, Path]) -> None:
    model = load_bundle(saved["transformer"]).model
    model.alignment = choice
    source, read = torch.tensor([[5, 6, 7, EOS]]), torch.tensor([[BOS, 8, 9]])
    want = literal(model, [5, 6, 7], [8, 9], replace(choice, shift=0))
    state = model.start(model.encode(source, source >= 0))
    for n in range(3):
        _, state, attention = model.attending_step(read[:, n : n + 1], state)
        np.testing.assert_allclose(attention[0, 0].numpy(), want[n], atol=1e-5)


@pytest.fixture
def folder(saved: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved["transformer"], tmp_path / "model"))


def test_a_stored_choice_is_obeyed_wherever_alignments_come_from(folder: Path) -> None:
    before = json.loads((folder / CONFIG).read_text())
    choice = AlignmentChoice(1, 3, 1)
    assert store_alignment(folder, choice) == folder / CONFIG
    after = json.loads((folder / CONFIG).read_text())
    assert after == before | {"alignment": {"layer": 1, "head": 3, "shift": 1}}
    translator = Translator.load(folder)
    assert translator.alignment_choice() == translator.config.alignment == choice
    assert isinstance(translator.engine, TorchEngine)
    found = translator.translate([LINES[0][0]], Options(details=True))[0]
    row = translator.tokenizer.encode(LINES[0][0])
    pieces = [n for n in translator.tokenizer.numbers(found.hypotheses[0].tokens) if n != EOS]
    want = piece_alignment(literal(translator.engine.model, row, pieces, choice))
    assert found.hypotheses[0].alignment == want


def test_an_unmeasured_model_is_read_as_usual(save: Callable[..., Path], tmp_path: Path) -> None:
    assert load_bundle(save(tmp_path / "t")).config.alignment == AlignmentChoice(2, None, 0)
    assert load_bundle(save(tmp_path / "r", "rnn")).config.alignment == AlignmentChoice(1, None, 0)


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (AlignmentChoice(3), "decoder layers 1 to 2; there is no 3"),
        (AlignmentChoice(2, 4), "heads 1 to 3; there is no 4"),
    ],
)
def test_a_choice_that_the_model_does_not_have_is_not_stored(
    choice: AlignmentChoice, said: str, folder: Path
) -> None:
    before = (folder / CONFIG).read_bytes()
    for use in (lambda: store_alignment(folder, choice), lambda: read_from(folder, choice)):
        with pytest.raises(ConfigError, match=said):
            use()
    assert (folder / CONFIG).read_bytes() == before


def read_from(folder: Path, choice: AlignmentChoice) -> None:
    Translator.load(folder).read_alignments_from(choice)


def test_a_choice_is_written_whole_or_not_at_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(DataError, match="No space left"):
        store_alignment(folder, AlignmentChoice(1, 1, 1))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({"layer": 1, "head": None}, "a layer, a head"),
        ({"layer": "1", "head": None, "shift": 0}, "all numbers"),
        ({"layer": 1, "head": True, "shift": 0}, "all numbers"),
        ({"layer": 0, "head": None, "shift": 0}, "count from 1"),
        ({"layer": 1, "head": 1, "shift": 2}, "shift is 2"),
    ],
)
def test_a_damaged_choice_is_named(said: dict[str, Any], named: str, folder: Path) -> None:
    settings = json.loads((folder / CONFIG).read_text()) | {"alignment": said}
    (folder / CONFIG).write_text(json.dumps(settings))
    with pytest.raises(BundleError, match=named):
        load_bundle(folder)
