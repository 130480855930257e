"""A model folder comes back as it was, or is refused with the reason."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import nn

from kakehashi.data.seen import TrainingSentences
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.errors import BundleError
from kakehashi.inference.bundle import load_bundle
from kakehashi.inference.folder import training_sentences
from kakehashi.inference.options import Options
from kakehashi.inference.save import save_bundle
from kakehashi.inference.translator import Translator
from kakehashi.models.build import build_model
from kakehashi.models.config import TransformerConfig

FILES = ["README.md", "config.json", "model.safetensors", "tokenizer.model"]


@pytest.fixture
def folder(saved: dict[str, Path], tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(saved["transformer"], tmp_path / "copy"))


def edit(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    file = folder / "config.json"
    settings = json.loads(file.read_text("utf-8"))
    change(settings)
    file.write_text(json.dumps(settings), "utf-8")


def refused(folder: Path, *words: str) -> None:
    with pytest.raises(BundleError) as caught:
        load_bundle(folder)
    for word in words:
        assert word in str(caught.value)


def test_comes_back_as_it_was(kind: str, saved: dict[str, Path], random_model: Any) -> None:
    bundle = load_bundle(saved[kind])
    original = random_model(kind)
    for name, tensor in original.state_dict().items():
        assert torch.equal(bundle.model.state_dict()[name], tensor), name
    assert bundle.model.config == original.config
    assert not bundle.model.training
    assert not any(parameter.requires_grad for parameter in bundle.model.parameters())
    config = bundle.config
    assert (config.source_language, config.target_language, config.max_length) == ("de", "en", 53)
    assert config.decoding == DecodingConfig(beam=3, max_ratio=0.1, max_extra=9, batch_size=5)
    assert config.metadata == {"corpus": "small", "pairs": 132}
    assert sorted(path.name for path in saved[kind].iterdir()) == FILES


def test_tied_tensors_are_stored_once_and_tied_again(kind: str, saved: dict[str, Path]) -> None:
    stored = safetensors.torch.load_file(saved[kind] / "model.safetensors")
    model = load_bundle(saved[kind]).model
    learned = sum(p.numel() for p in model.parameters())
    assert sum(t.numel() for t in stored.values()) == learned + model.vocab_size  # and silence
    assert len(stored) < len(model.state_dict())
    embedding = next(m for m in model.modules() if isinstance(m, nn.Embedding))
    assert model.output.weight is embedding.weight


def test_translates_the_same_in_a_new_process(saved: dict[str, Path], small_corpus: Any) -> None:
    lines = small_corpus.source[:6]
    program = (
        "import json, sys\n"
        "from kakehashi import Options, Translator\n"
        "lines = json.loads(sys.argv[1])\n"
        "for folder in sys.argv[2:]:\n"
        "    found = Translator.load(folder).translate(lines, Options(n_best=2))\n"
        "    print(json.dumps([[(h.text, h.score) for h in t.hypotheses] for t in found]))\n"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program, json.dumps(lines), *map(str, saved.values())],
        capture_output=True,
        check=True,
    ).stdout
    for folder, output in zip(saved.values(), printed.splitlines(), strict=True):
        here = Translator.load(folder).translate(lines, Options(n_best=2))
        for translation, hypotheses in zip(here, json.loads(output), strict=True):
            texts, scores = zip(*hypotheses, strict=True)
            assert [h.text for h in translation.hypotheses] == list(texts)
            assert [h.score for h in translation.hypotheses] == pytest.approx(scores, abs=1e-5)


def test_loading_leaves_the_callers_random_numbers_alone(saved: dict[str, Path]) -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    load_bundle(saved["transformer"])
    assert torch.equal(torch.rand(2), expected)


def test_a_run_folder_stands_for_its_model(saved: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(saved["rnn"], tmp_path / "2026" / "model")
    (tmp_path / "latest").symlink_to("2026")
    assert load_bundle(tmp_path / "latest").config == load_bundle(saved["rnn"]).config


def test_the_training_sentences_go_where_the_folder_goes(
    save: Callable[..., Path], saved: dict[str, Path], small_corpus: Any, tmp_path: Path
) -> None:
    training = TrainingSentences.of(small_corpus.source, small_corpus.target)
    folder = save(tmp_path / "here", training=training)
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [*FILES, "training_hashes.safetensors"]
    )
    moved = Path(shutil.move(folder, tmp_path / "there"))
    load_bundle(moved)
    kept = training_sentences(moved)
    assert kept is not None
    assert kept.lines_in(["nie gesehen", small_corpus.source[4]], "source") == [2]
    assert training_sentences(saved["transformer"]) is None


def test_what_is_no_model_folder_is_named(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", "no model folder", "nowhere")
    refused(tmp_path, str(tmp_path), "no config.json")
    (tmp_path / "file").write_text("x")
    refused(tmp_path / "file", "is a file")


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.model"])
def test_a_missing_file_is_named(folder: Path, file: str) -> None:
    (folder / file).unlink()
    refused(folder, file, str(folder), "copy the whole folder")


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999])
def test_truncated_weights_are_refused(folder: Path, share: float) -> None:
    file = folder / "model.safetensors"
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    refused(folder, "model.safetensors", "damaged", "copy the folder again")


def test_a_changed_byte_is_found(folder: Path) -> None:
    file = folder / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-101] ^= 1
    file.write_bytes(bytes(content))
    refused(folder, "model.safetensors", "damaged or from another model")


class Payload:
    """Leaves a mark when somebody unpickles it."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.mark,))


def test_a_pickle_is_not_opened_whatever_its_name(folder: Path, tmp_path: Path) -> None:
    import hashlib

    mark = tmp_path / "executed"
    for content in (pickle.dumps(Payload(mark)), pickle.dumps({"a": Payload(mark)}, protocol=0)):
        (folder / "model.safetensors").write_bytes(content)
        edit(folder, lambda s, c=content: s.update(weights_sha256=hashlib.sha256(c).hexdigest()))
        refused(folder, "model.safetensors", "not a safetensors file")
    torch.save({"output.weight": Payload(mark)}, folder / "model.safetensors")
    refused(folder, "model.safetensors", "not a safetensors file")
    (folder / "tokenizer.model").write_bytes(pickle.dumps(Payload(mark)))
    refused(folder, "tokenizer.model")
    assert not mark.exists()
    pickle.loads(pickle.dumps(Payload(mark)))  # noqa: S301
    assert mark.exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"{}", b"\xff\xfe{}"])
def test_a_config_that_is_none_is_refused(folder: Path, content: bytes) -> None:
    (folder / "config.json").write_bytes(content)
    refused(folder, "config.json")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.update(format_version=3), ["format version 3", "newer"]),
        (lambda s: s.update(colour="red"), ["colour"]),
        (lambda s: s.pop("max_length"), ["max_length"]),
        (lambda s: s.update(max_length="53"), ["max_length", "'53'"]),
        (lambda s: s.update(vocab_size=True), ["vocab_size", "True"]),
        (lambda s: s.update(model=[]), ["model"]),
        (lambda s: s["model"].update(d_modell=3), ["d_modell"]),
        (lambda s: s["model"].update(name="lstm"), ["lstm", "transformer", "rnn"]),
        (lambda s: s["model"].update(norm="batch"), ["batch", "layer, rms"]),
        (lambda s: s["model"]["score"].update(name="cosine"), ["cosine"]),
        (lambda s: s["model"]["score"].update(heat=2), ["heat"]),
        (lambda s: s["decoding"].update(beam=0), ["beam"]),
        (lambda s: s["decoding"].pop("max_ratio"), ["max_ratio"]),
    ],
)
def test_settings_that_are_not_understood_are_named(
    folder: Path, change: Callable[[dict[str, Any]], None], words: list[str]
) -> None:
    edit(folder, change)
    refused(folder, "config.json", *words)


def test_another_tokenizer_is_refused(folder: Path, small_corpus: Any) -> None:
    Tokenizer.train(small_corpus.target, vocab_size=389).save(folder / "tokenizer.model")
    refused(folder, "tokenizer.model", "another tokenizer")


def test_a_tokenizer_of_another_size_is_refused(folder: Path) -> None:
    edit(folder, lambda s: s.update(vocab_size=402))
    refused(folder, "tokenizer.model", "401", "402")


def change_tensors(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    change(tensors)
    safetensors.torch.save_file(tensors, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.pop(sorted(t)[2]), ["lacks tensors"]),
        (lambda t: t.update(extra=torch.zeros(3)), ["unknown", "extra"]),
        (
            lambda t: t.update({"_orig_mod." + name: t.pop(name) for name in list(t)}),
            ["lacks tensors", "more"],
        ),
    ],
)
def test_other_tensors_than_the_models_are_named(
    folder: Path, change: Callable[[dict[str, Any]], Any], words: list[str]
) -> None:
    change_tensors(folder, change)
    refused(folder, "model.safetensors", *words)


def test_a_tensor_of_another_shape_is_named(folder: Path) -> None:
    edit(folder, lambda s: s["model"].update(d_feedforward=41))
    refused(folder, "model.safetensors", "37", "41", "feedforward")


def test_saving_the_same_again_is_fine_and_something_else_is_refused(
    save: Any, tmp_path: Path
) -> None:
    save(tmp_path / "model")
    before = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    save(tmp_path / "model")
    with pytest.raises(BundleError, match="exists and holds something else"):
        save(tmp_path / "model", card="# another\n")
    with pytest.raises(BundleError, match="exists"):
        save(tmp_path / "model", kind="rnn")
    assert {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_nothing_is_left_of_a_save_that_fails(
    save: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(BundleError, match=r"model: No space left"):
        save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [float("nan"), object()])
def test_metadata_that_json_cannot_hold_are_refused(
    save: Any, tmp_path: Path, value: object
) -> None:
    with pytest.raises(BundleError, match="metadata"):
        save(tmp_path / "model", metadata={"a": value})
    assert list(tmp_path.iterdir()) == []


def test_a_model_with_another_vocabulary_than_its_tokenizer_is_refused(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    model = build_model(TransformerConfig(d_model=8), 97)
    with pytest.raises(BundleError, match="97") as caught:
        save_bundle(
            tmp_path / "model",
            model,
            tokenizer,
            source_language="de",
            target_language="en",
            max_length=5,
            decoding=DecodingConfig(),
            card="",
            metadata={},
        )
    assert "401" in str(caught.value)


def test_others_may_read_what_the_user_lets_them(save: Any, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        save(tmp_path / "model")
    finally:
        os.umask(before)
    assert (tmp_path / "model").stat().st_mode & 0o777 == 0o750
