"""`kakehashi probe`: tables of what heads do, and what a pronoun looks at."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.inference.save import save_bundle
from kakehashi.models.build import build_model
from kakehashi.models.config import TransformerConfig

WHO = "".join(
    f"{gender}\t{at}\tThe driver met the {job} when {word} fell.\t{name}\n"
    for job in ("nurse", "clerk")
    for gender, word in (("male", "he"), ("female", "she"))
    for at, name in ((1, "driver"), (4, job))
)


@pytest.fixture(scope="module")
def transformer(small_corpus: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(11)
    tokenizer = Tokenizer.train([*small_corpus.source, *small_corpus.target], vocab_size=401)
    config = TransformerConfig(
        encoder_layers=1, decoder_layers=1, d_model=12, d_feedforward=11, n_heads=2
    )
    return save_bundle(
        tmp_path_factory.mktemp("model") / "model",
        build_model(config, 401),
        tokenizer,
        source_language="en",
        target_language="de",
        max_length=53,
        decoding=DecodingConfig(beam=2, max_ratio=0.1, max_extra=3),
        card="# card\n",
        metadata={},
    )


def test_every_head_has_a_row(
    kakehashi: Any, model_folder: Path, small_corpus: Any, tmp_path: Path
) -> None:
    table, picture = tmp_path / "heads.json", tmp_path / "heads.png"
    texts = "--source", small_corpus.source_path, "--reference", small_corpus.target_path
    options = "--lines", 3, "--lexicon", texts[1], texts[3], "-o", table, "--picture", picture
    ended = kakehashi("probe", "heads", model_folder, *texts, *options)
    assert (ended.status, ended.out) == (0, b"")
    assert "3 lines, beam 1: BLEU" in ended.err
    found = json.loads(table.read_text(encoding="utf-8"))
    assert found["lines"] == 3
    (row,) = found["rows"]
    assert (row["attention"], row["layer"], row["head"]) == ("cross", 1, 1)
    assert row["loss"] == pytest.approx(found["bleu"] - row["bleu"])
    assert 0 < row["aligned"] < 100
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("ending", ["tsv", "md"])
def test_without_a_reference_nothing_is_removed(
    kakehashi: Any, model_folder: Path, tmp_path: Path, ending: str
) -> None:
    source, table = tmp_path / "source", tmp_path / f"heads.{ending}"
    source.write_text("Der Hund schläft.\n\n", encoding="utf-8")
    ended = kakehashi("probe", "heads", model_folder, "--source", source)
    assert ended.status == 0
    assert ended.out.startswith(b"attention  layer  head  kind")
    assert b"cross      1      1" in ended.out
    assert b"BLEU" not in ended.out
    assert kakehashi("probe", "heads", model_folder, "--source", source, "-o", table).status == 0
    lines = table.read_text(encoding="utf-8").splitlines()
    assert len({line.count("\t" if ending == "tsv" else "|") for line in lines[:2]}) == 1


def test_a_pronoun_is_judged(kakehashi: Any, transformer: Path, tmp_path: Path) -> None:
    sentences, table = tmp_path / "who.tsv", tmp_path / "who.json"
    lost = "male\t1\tThe clerk slept.\tclerk\n"
    sentences.write_text(WHO + lost, encoding="utf-8")
    ended = kakehashi("probe", "pronoun", transformer, "--sentences", sentences, "-o", table)
    assert ended.status == 0
    assert "left out: no other entity is named: 1" in ended.err
    found = json.loads(table.read_text(encoding="utf-8"))
    assert (found["sentences"], found["beginnings"]) == (8, 2)
    assert [row["who chooses"] for row in found["rows"][:3]] == [
        "layer 1, head 1",
        "layer 1, head 2",
        "layer 1, mean",
    ]
    ended = kakehashi("probe", "pronoun", transformer, "--sentences", sentences)
    assert b"nearest noun" in ended.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["heads", "--source", "text", "-o", "table.csv"], "a table's name ends in .tsv"),
        (["heads", "--source", "text", "--picture", "p.txt"], "a picture's name ends in"),
        (["heads", "--source", "empty"], "empty holds no text"),
        (["heads", "--source", "text", "--reference", "empty"], "text has 1 lines and empty has 0"),
        (["pronoun", "--sentences", "who.tsv"], "no self-attention"),
        (["pronoun", "--sentences", "text"], "text, line 1: not gender"),
    ],
)
def test_what_cannot_be_measured_is_said(
    kakehashi: Any,
    model_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("text", "Hund\n"), ("empty", ""), ("who.tsv", WHO)):
        Path(name).write_text(text, encoding="utf-8")
    ended = kakehashi("probe", words[0], model_folder, *words[1:])
    assert ended.status == 1
    assert message in ended.err
    assert ended.err.count("\n") == 1
    assert len(list(tmp_path.iterdir())) == 3
