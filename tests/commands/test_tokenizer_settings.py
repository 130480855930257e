"""A run whose tokenizer normalises, knows symbols and samples: what it says of it, and where."""

import json

import hydra
import pytest

from kakehashi.commands.config import config_dir, read_config, register_schemas
from kakehashi.commands.run import run
from kakehashi.inference.bundle import load_bundle


@pytest.mark.parametrize(
    "tokenizer", ["bpe_dropout", pytest.param("unigram_sampling", marks=pytest.mark.slow)]
)
def test_a_run_tells_what_its_tokenizer_does(tokenizer, small_corpus, tmp_path, capsys):
    for name, lines in (("de", small_corpus.source), ("en", small_corpus.target)):
        text = "\n".join(["Hallo {name}, … gut", *lines])
        (tmp_path / f"corpus.{name}").write_text(f"{text}\n", encoding="utf-8")
    words = [
        "name=told",
        "debug=one_batch",
        "data=files",
        "data.source_language=de",
        "data.target_language=en",
        f"data.train.source='{tmp_path}/corpus.de'",
        f"data.train.target='{tmp_path}/corpus.en'",
        "data.valid_size=4",
        "data.test_size=7",
        f"data.root='{tmp_path}'",
        "decoding.max_ratio=1.0",
        "decoding.max_extra=1",
        f"tokenizer={tokenizer}",
        "tokenizer.vocab_size=420",
        "tokenizer.normalization=nfkc",
        "tokenizer.symbols=['{name}','%s']",
    ]
    register_schemas()
    with hydra.initialize_config_dir(str(config_dir()), version_base="1.3"):
        config = read_config(hydra.compose("train", overrides=words))
    folder = tmp_path / "runs" / "first"
    folder.mkdir(parents=True)
    run(config, folder, words)
    told = capsys.readouterr().err
    assert "normalisation: nfkc (changes " in told
    assert "U+2026 HORIZONTAL ELLIPSIS -> '...'" in told
    assert "no training pair has %s on both sides" in told
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    normalisation = summary["normalisation"]
    assert normalisation["name"] == "nfkc"
    assert 1 <= normalisation["changed"] <= normalisation["sentences"]
    assert normalisation["examples"][0]["characters"]
    assert summary["tokenizer"]["symbols"] == ["{name}", "%s"]
    assert all(
        0.9 < factor < 3 and factor != 1 for factor in summary["corpus"]["growth_by_sampling"]
    )
    card = (folder / "model" / "README.md").read_text(encoding="utf-8")
    assert f"| normalisation | nfkc (changes {normalisation['changed']:,} of " in card
    assert "| symbols | `{name}` `%s` |" in card
    setting = config.tokenizer.sampling.setting
    assert f"| subword sampling | `{setting}`, in training only |" in card
    assert load_bundle(folder / "model").tokenizer.settings.symbols == ("{name}", "%s")
