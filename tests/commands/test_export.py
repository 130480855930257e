"""`kakehashi export`, and the exported folder in other commands."""

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.conftest import Kakehashi

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.inference.save import save_bundle
from kakehashi.models.build import build_model
from kakehashi.models.config import TransformerConfig
from kakehashi.symbols import EOS

SOURCE = "Der Hund schläft.\n\nDas Wetter ist heute schön.\n"


@pytest.fixture
def model(tmp_path: Path, small_corpus: Any) -> Path:
    """A random Transformer in a folder with a space in its name."""
    torch.manual_seed(5)
    tokenizer = Tokenizer.train([*small_corpus.source, *small_corpus.target], vocab_size=401)
    config = TransformerConfig(
        encoder_layers=1, decoder_layers=1, d_model=24, d_feedforward=24, n_heads=2
    )
    network = build_model(config, 401)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    words = [i for i, p in enumerate(tokenizer.pieces(range(401))) if not p.startswith("<")]
    network.output.restrict(torch.tensor([*words, EOS]))
    return save_bundle(
        tmp_path / "a model",
        network,
        tokenizer,
        source_language="de",
        target_language="en",
        max_length=53,
        decoding=DecodingConfig(beam=1, max_ratio=0.2, max_extra=5, batch_size=4),
        card="# card\n",
        metadata={},
    )


def test_the_exported_model_translates_the_same(model: Path, kakehashi: Kakehashi) -> None:
    (model.parent / "lines.de").write_text(SOURCE)
    ended = kakehashi(
        "export", model, "--to", "ctranslate2", "--check-source", model.parent / "lines.de"
    )
    assert ended.status == 0, ended.err
    assert "the same text on 2 of 2 lines" in ended.out.decode()
    for place in (model, model / "ctranslate2"):
        words = ("translate", place, "--engine", "ctranslate2", "--format", "jsonl")
        theirs = kakehashi(*words, stdin=SOURCE.encode())
        assert theirs.status == 0, theirs.err
    ours = kakehashi("translate", model, "--format", "jsonl", stdin=SOURCE.encode())
    rows = [[json.loads(line) for line in e.out.splitlines()] for e in (ours, theirs)]
    assert [row["translation"] for row in rows[0]] == [row["translation"] for row in rows[1]]
    assert [row["score"] for row in rows[0]] == pytest.approx(
        [row["score"] for row in rows[1]], abs=1e-4
    )
    (model.parent / "lines.en").write_text("The dog.\n\nThe weather.\n")
    files = ("--source", model.parent / "lines.de", "--reference", model.parent / "lines.en")
    scored = kakehashi("evaluate", model, *files, "--engine", "ctranslate2", "--metric", "chrf")
    assert scored.status == 0 and b"chrF" in scored.out
    again = kakehashi("export", model, "--to", "ctranslate2")
    assert again.status == 1 and "exists already" in again.err


@pytest.mark.filterwarnings("ignore:Recommended:UserWarning")  # what MarianTokenizer would like
@pytest.mark.parametrize("to", ["ctranslate2", pytest.param("huggingface", marks=pytest.mark.slow)])
def test_the_words_of_the_readme_work(
    to: str,
    model: Path,
    kakehashi: Kakehashi,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (model.parent / "lines.de").write_text(SOURCE)
    words = ("export", model, "--to", to, "--check-source", model.parent / "lines.de")
    assert kakehashi(*words).status == 0
    folder = model / to
    program = (folder / "README.md").read_text().split("```python\n")[1].split("```")[0]
    expected = kakehashi("translate", model, stdin=b"Guten Morgen!\n").out.decode().strip()
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.stdin", io.StringIO("Guten Morgen!\n"))
    with redirect_stdout(io.StringIO()) as said:
        exec(program, {})
    assert expected and expected in said.getvalue()


def test_what_cannot_be_exported_is_said_in_a_sentence(
    model_folder: Path, tmp_path: Path, kakehashi: Kakehashi
) -> None:
    for to in ("ctranslate2", "huggingface"):
        ended = kakehashi("export", model_folder, "--to", to, "-o", tmp_path / "out")
        assert ended.status == 1
        assert "recurrent model" in ended.err and "--engine torch" in ended.err
    ended = kakehashi("translate", model_folder, "--engine", "ctranslate2", stdin=b"Hund\n")
    assert ended.status == 1 and "recurrent model" in ended.err and not ended.out
    assert "kakehashi export" not in ended.err
    assert not list(tmp_path.iterdir())


def test_what_is_no_model_for_torch_or_has_no_export_says_what_to_do(
    model: Path, kakehashi: Kakehashi
) -> None:
    ended = kakehashi("translate", model, "--engine", "ctranslate2", stdin=b"Hund\n")
    assert f"kakehashi export '{model}' --to ctranslate2 -o '{model}/ctranslate2'" in ended.err
    folder = model.parent / "other"
    folder.mkdir()
    for name in ("export.json", "config.json"):
        (folder / name).write_text("{}")
    ended = kakehashi("translate", folder, stdin=b"Hund\n")
    assert ended.status == 1 and "add --engine ctranslate2" in ended.err
    (folder / "model.safetensors").write_text("")
    ended = kakehashi("translate", folder, stdin=b"Hund\n")
    assert ended.status == 1 and "export for transformers" in ended.err


def test_the_current_folder_is_refused_at_once(
    model: Path, kakehashi: Kakehashi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "empty"
    place.mkdir()
    monkeypatch.chdir(place)
    ended = kakehashi("export", model, "--to", "ctranslate2", "-o", ".")
    assert ended.status == 1 and "the folder that you are in" in ended.err


def test_nothing_is_fetched_to_check_on(tmp_path: Path) -> None:
    from kakehashi.commands.export import _is_here
    from kakehashi.data.config import DataConfig

    data = DataConfig(root=str(tmp_path))
    assert not _is_here(data)
    (tmp_path / "tatoeba").mkdir()
    (tmp_path / "tatoeba" / "sentences.tsv").write_text("")
    assert _is_here(data)


def test_words_that_do_not_go_together(model: Path, kakehashi: Kakehashi) -> None:
    words = ("export", model, "--to", "huggingface", "--quantization", "int8")
    assert kakehashi(*words).status == 2
    words = ("export", model, "--to", "ctranslate2", "--check-reference", "x")
    assert kakehashi(*words).status == 2
