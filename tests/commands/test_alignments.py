"""Alignments by choice, from two directions, against gold; probing; alignments that teach."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

from kakehashi.commands.config import TrainConfig
from kakehashi.commands.run import _alignments_digest
from kakehashi.commands.taught import given_links
from kakehashi.data.config import DataConfig, SplitConfig
from kakehashi.data.corpora.base import Corpus
from kakehashi.data.pairs import Pairs
from kakehashi.data.reading import write_lines
from kakehashi.data.tokenizer import SPACE, Tokenizer
from kakehashi.data.tokenizer_config import SamplingConfig, TokenizerConfig
from kakehashi.decoding.config import DecodingConfig
from kakehashi.errors import ConfigError, DataError, TrainingError
from kakehashi.evaluation.links import Symmetrisation, symmetrise, write_links
from kakehashi.inference.alignment import pharaoh
from kakehashi.inference.refinement import refine
from kakehashi.inference.save import save_bundle
from kakehashi.inference.storing import store_alignment
from kakehashi.inference.translator import Translator
from kakehashi.models.alignment import AlignmentChoice
from kakehashi.models.build import build_model
from kakehashi.models.config import TransformerConfig
from kakehashi.training.checkpoint import PREFIX
from kakehashi.training.config import LoggerConfig, ObjectiveConfig, TrainerConfig
from kakehashi.training.resume import check_fits

SOURCE = ["Der Hund schläft.", "", "Die Katze trinkt Milch.", "ein Haus"]
TARGET = ["The dog is asleep.", "", "The cat drinks milk.", "a house"]
GOLD = ["1-1 2-2 3-3 3p4", "", "1-1 2-2 3-3 4-4", "1-1 2-2"]


@pytest.fixture
def files(tmp_path: Path) -> list[Any]:
    write_lines(tmp_path / "a.de", SOURCE)
    write_lines(tmp_path / "a.en", TARGET)
    write_lines(tmp_path / "a.gold", GOLD)
    write_lines(tmp_path / "short.gold", GOLD[:3])
    return ["--source", tmp_path / "a.de", "--target", tmp_path / "a.en"]


@pytest.fixture
def backward(model_folder: Path, tmp_path: Path) -> Path:
    """The same model, said to be of the other direction."""
    folder = Path(shutil.copytree(model_folder, tmp_path / "backward"))
    text = (folder / "config.json").read_text()
    for old, new in (("source", "en"), ("target", "de")):
        here = f'"{old}_language": "{"de" if old == "source" else "en"}"'
        text = text.replace(here, f'"{old}_language": "{new}"')
    (folder / "config.json").write_text(text)
    return folder


def lines(ended: Any) -> list[str]:
    assert ended.status == 0, ended.err
    return list(ended.out.decode().split("\n")[:-1])


@pytest.fixture(scope="module")
def heads_folder(small_corpus: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Transformer whose heads look in different directions."""
    torch.manual_seed(3)
    tokenizer = Tokenizer.train([*small_corpus.source, *small_corpus.target], vocab_size=401)
    config = TransformerConfig(
        encoder_layers=1, decoder_layers=2, d_model=24, d_feedforward=29, n_heads=3
    )
    model = build_model(config, 401)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(3.0).add_(0.05 * torch.randn_like(parameter))
    return save_bundle(
        tmp_path_factory.mktemp("heads") / "model",
        model,
        tokenizer,
        source_language="de",
        target_language="en",
        max_length=53,
        decoding=DecodingConfig(),
        card="# card\n",
        metadata={},
    )


@pytest.mark.parametrize(
    ("words", "choice"),
    [
        ([], AlignmentChoice(2, None, 0)),
        (["--head", 2, "--shift", 1], AlignmentChoice(2, 2, 1)),
        (["--layer", 1, "--head", "mean"], AlignmentChoice(1, None, 0)),
    ],
)
def test_what_is_asked_for_is_what_is_read(
    words: list[Any], choice: AlignmentChoice, kakehashi: Any, heads_folder: Path, files: list[Any]
) -> None:
    translator = Translator.load(heads_folder)
    seen = set()
    for each in (choice, AlignmentChoice(1, 1, 1)):
        translator.read_alignments_from(each)
        aligned = translator.align(zip(SOURCE, TARGET, strict=True))
        seen.add(tuple(pharaoh(one.word_alignment) for one in aligned))
    told = tuple(lines(kakehashi("align", heads_folder, *files, *words)))
    assert told in seen and len(seen) == 2
    translator.read_alignments_from(choice)
    want = translator.align(zip(SOURCE, TARGET, strict=True))
    assert told == tuple(pharaoh(one.word_alignment) for one in want)


def test_two_directions_are_one_alignment_and_gold_tells_how_good(
    kakehashi: Any, model_folder: Path, backward: Path, files: list[Any], tmp_path: Path
) -> None:
    forward = Translator.load(model_folder).align(zip(SOURCE, TARGET, strict=True))
    back = Translator.load(backward).align(zip(TARGET, SOURCE, strict=True))
    how = Symmetrisation.union
    want = [
        write_links(
            symmetrise(
                frozenset(a.word_alignment), frozenset((i, j) for j, i in b.word_alignment), how
            )
        )
        for a, b in zip(forward, back, strict=True)
    ]
    gold = ["--gold", tmp_path / "a.gold", "--gold-first", 1]
    words = ["--with-reverse", backward, "--symmetrise", how.value, *gold]
    ended = kakehashi("align", model_folder, *files, *words)
    assert lines(ended) == want
    assert "AER" in ended.err and "4 sentence pairs" in ended.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--layer", "2"], "decoder layers 1 to 1; there is no 2"),
        (["--head", "2"], "heads 1 to 1; there is no 2"),
        (["--head", "all"], "a number from 1, or mean"),
        (["--refine", "2"], "name the other with --with-reverse"),
        (["--prefix", "2"], "which --refine does"),
        (["--refine", "2", "--with-reverse", "MODEL", "--symmetrise", "union"], "give one"),
        (["--gold", "short.gold", "--gold-first", "1"], "short.gold has 3 lines"),
        (["--gold", "a.gold", "--gold-first", "0", "--with-reverse", "MODEL"], "en to de"),
    ],
)
def test_what_cannot_be_read_is_said(
    words: list[str],
    said: str,
    kakehashi: Any,
    model_folder: Path,
    files: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [model_folder if word == "MODEL" else word for word in words]
    ended = kakehashi("align", model_folder, *files, *given)
    assert ended.status != 0
    assert said in " ".join(ended.err.split())
    assert not ended.out


def test_a_probe_shows_every_way_and_stores_the_best(
    kakehashi: Any, model_folder: Path, backward: Path, files: list[Any], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(model_folder, tmp_path / "model"))
    store_alignment(folder, AlignmentChoice(1, 1, 1))
    words = ["--gold", tmp_path / "a.gold", "--gold-first", 1, "--reverse", backward]
    shown = lines(kakehashi("probe", "alignment", folder, *files, *words))
    rows = [line.split() for line in shown if line.startswith("1 ")]
    assert sorted(row[:3] for row in rows) == [
        ["1", "mean", shift] for shift in "0011"
    ]  # both models
    assert Translator.load(folder).config.alignment == AlignmentChoice(1, 1, 1)  # not asked to
    assert {how.value for how in Symmetrisation} <= {line.split()[0] for line in shown if line}
    kakehashi("probe", "alignment", folder, *files, *words, "--store")
    best = AlignmentChoice(1, None, int(rows[0][2]))
    assert Translator.load(folder).config.alignment == best
    assert shown.count(f"best: {best}") >= 1


def test_two_directions_are_refined_over_the_text(
    kakehashi: Any, model_folder: Path, backward: Path, files: list[Any], tmp_path: Path
) -> None:
    pairs = list(zip(SOURCE, TARGET, strict=True))
    there = list(Translator.load(model_folder).word_attention(pairs))
    back = list(Translator.load(backward).word_attention([(t, s) for s, t in pairs]))
    want = [write_links(links) for links in refine(pairs, there, back, 2, 3)]
    gold = ["--gold", tmp_path / "a.gold", "--gold-first", 1]
    words = ["--with-reverse", backward, "--refine", 2, "--prefix", 3]
    ended = kakehashi("align", model_folder, *files, *words, *gold)
    assert lines(ended) == want
    assert "AER" in ended.err
    told = [
        json.loads(line)
        for line in lines(kakehashi("align", model_folder, *files, *words, "--format", "jsonl"))
    ]
    assert [one["word_alignment"] for one in told] == want
    assert [(one["source"], one["target"]) for one in told] == pairs


def test_words_attend_by_the_pieces_that_they_are_spelt_with(model_folder: Path) -> None:
    translator = Translator.load(model_folder)
    pairs = [("Die Katze trinkt Milch.", "The cat drinks milk."), ("", ""), ("Hund", "a dog")]
    found = list(translator.word_attention(pairs))
    assert [each.shape for each in found] == [(4, 4), (0, 0), (2, 1)]
    tokenizer = translator.tokenizer
    rows = [tokenizer.encode(text) for text in pairs[0]]
    (followed,) = translator.engine.follow(rows[:1], rows[1:], attending=True)
    assert followed.attention is not None
    numbers = [
        np.cumsum([piece.startswith(SPACE) for piece in tokenizer.pieces(row)]) - 1 for row in rows
    ]
    for n in range(4):
        for m in range(4):
            part = followed.attention[:-1, :-1][numbers[1] == n][:, numbers[0] == m]
            assert found[0][n, m] == pytest.approx(part.sum(axis=1).mean(), abs=1e-3)


def corpus(read: int = 3, numbers: tuple[int, ...] = (1, 3)) -> Corpus:
    """Two pairs that are left of three lines."""
    train = Pairs([SOURCE[0], SOURCE[2]], [TARGET[0], TARGET[2]], "a.de, a.en", numbers)
    nothing = Pairs([], [])
    return Corpus("small", "de", "en", train, nothing, nothing, read={"train": read})


def test_links_of_words_become_links_of_all_their_pieces(small_corpus: Any, tmp_path: Path) -> None:
    tokenizer = Tokenizer.train([*small_corpus.source, *small_corpus.target], vocab_size=401)
    path = tmp_path / "links"
    write_lines(path, ["0-0 2-2", "7-7", "3-3"])  # the second pair was left out
    found = given_links(path, corpus(), tokenizer)
    for at, (line, links) in enumerate([(0, [(0, 0), (2, 2)]), (2, [(3, 3)])]):
        sides = []
        for text in (SOURCE[line], TARGET[line]):
            word, held = -1, []
            for piece in tokenizer.pieces(tokenizer.encode(text)):
                word += piece.startswith("\u2581")
                held.append(word)
            sides.append(held)
        want = {
            (m, n)
            for m, i in enumerate(sides[0])
            for n, j in enumerate(sides[1])
            if (i, j) in links
        }
        here = slice(found.offsets[at], found.offsets[at + 1])
        pairs = np.stack([found.source[here], found.target[here]], 1).tolist()
        assert set(map(tuple, pairs)) == want and len(pairs) == len(want) > 0


@pytest.mark.parametrize(
    ("links", "of", "error", "said"),
    [
        (["0-0"] * 2, corpus(), DataError, "links has 2 lines and the training text a.de, a.en"),
        (["0-0", "", "4-0"], corpus(), DataError, "line 3: 4-0 is no link of 4 words and 4"),
        (["0-0"] * 3, corpus(numbers=(7, 90)), ConfigError, "no file of lines"),
    ],
)
def test_links_that_do_not_fit_are_named(
    links: list[str],
    of: Corpus,
    error: type[Exception],
    said: str,
    small_corpus: Any,
    tmp_path: Path,
) -> None:
    tokenizer = Tokenizer.train([*small_corpus.source, *small_corpus.target], vocab_size=401)
    write_lines(tmp_path / "links", links)
    with pytest.raises(error, match=said):
        given_links(tmp_path / "links", of, tokenizer)


@pytest.mark.slow
def test_a_run_that_is_given_alignments_reads_its_own_off_the_taught_head(
    small_corpus: Any, tmp_path: Path
) -> None:
    from kakehashi.commands.run import run  # Lightning, seconds

    write_lines(tmp_path / "links", ["0-0"] * len(small_corpus.source))
    config = TrainConfig(
        name="taught",
        data=DataConfig(
            name="small",
            kind="files",
            source_language="de",
            target_language="en",
            root=str(tmp_path / "data"),
            train=SplitConfig(str(small_corpus.source_path), str(small_corpus.target_path)),
            valid_size=4,
            test_size=0,
        ),
        tokenizer=TokenizerConfig(vocab_size=420),
        model=TransformerConfig(
            encoder_layers=1, decoder_layers=1, d_model=32, d_feedforward=64, n_heads=2
        ),
        objective=ObjectiveConfig(alignments=str(tmp_path / "links")),
        trainer=TrainerConfig(max_updates=2, validate_every=2, accelerator="cpu"),
        logger=LoggerConfig(csv=False, tensorboard=False),
        decoding=DecodingConfig(beam=1, max_ratio=0.1, max_extra=2),
    )
    folder = tmp_path / "run"
    folder.mkdir()
    OmegaConf.save(OmegaConf.structured(config), folder / "config.yaml")
    run(config, folder, ["name=taught"])
    assert Translator.load(folder).config.alignment == AlignmentChoice(1, 2, 1)


def test_a_run_goes_on_with_no_other_alignments(tmp_path: Path) -> None:
    path = tmp_path / "links"
    told = []
    for line in ("0-0", "0-1"):
        write_lines(path, [line])
        told.append(
            _alignments_digest(TrainConfig(objective=ObjectiveConfig(alignments=str(path))))
        )
    assert _alignments_digest(TrainConfig()) == {}
    model = torch.nn.Linear(1, 1)
    weights = {PREFIX + name: weight for name, weight in model.state_dict().items()}
    checkpoint = {"kakehashi": told[0], "state_dict": weights}
    check_fits(checkpoint, model, told[0], path)
    with pytest.raises(TrainingError, match="another value of the alignments"):
        check_fits(checkpoint, model, told[1], path)


def test_pieces_that_change_from_epoch_to_epoch_have_no_alignments() -> None:
    with pytest.raises(ConfigError, match="same pieces in every epoch"):
        TrainConfig(
            objective=ObjectiveConfig(alignments="links"),
            tokenizer=TokenizerConfig(kind="bpe", sampling=SamplingConfig(dropout=0.1)),
        )
    with pytest.raises(ConfigError, match="must be above 0"):
        ObjectiveConfig(alignments="links", alignment_weight=0.0)
