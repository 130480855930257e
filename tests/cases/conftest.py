"""Models of both kinds that translate a toy language word for word, and where the cases lie.

The same assertions run over files written here and over the reference files of the folder
``shared/cases``, where that is at hand.
"""

import os
import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from kakehashi.data.reading import is_blank
from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.inference.save import save_bundle
from kakehashi.models.build import build_model
from kakehashi.models.config import RNNConfig, TransformerConfig
from kakehashi.symbols import BOS, EOS, PAD
from kakehashi.training.config import OptimizerConfig
from kakehashi.training.objective import cross_entropy
from kakehashi.training.optimizer import build_optimizer

ROOT = Path(__file__).resolve().parents[2]

WORDS = {
    "hund": "dog",
    "katze": "cat",
    "haus": "house",
    "baum": "tree",
    "brücke": "bridge",
    "mond": "moon",
    "brot": "bread",
    "fluss": "river",
    "der": "the",
    "schläft": "sleeps",
    "</s>": "</s>",
    "<pad>": "<pad>",
    "🐶": "🐶",
    "👩\u200d👧": "👩\u200d👧",
    "https://a.example/?b=1": "https://a.example/?b=1",
}
"""A language and its translation. What other programs take for control symbols are words of it."""
LONGEST = 7
"""Words in its longest sentence."""
CONFIGS: dict[str, Any] = {
    "transformer": TransformerConfig(
        encoder_layers=1, decoder_layers=1, d_model=48, d_feedforward=64, n_heads=2, dropout=0.0
    ),
    "rnn": RNNConfig(d_embedding=32, d_hidden=48, d_attention=32, d_maxout=32, dropout=0.0),
}
BY_HEART = (
    *(word for word in WORDS if word not in ("</s>", "<pad>")),
    "der hund",
    "der </s> hund",
    "hund </s> katze",
    "der 🐶 schläft",
    "mond haus baum hund",
)
"""What the models must not get wrong."""
UPDATES = 300


def in_english(line: str) -> str:
    """The right translation of words of the language."""
    return " ".join(WORDS[word] for word in line.split())


def sentences(count: int, seed: int) -> list[str]:
    """Sentences of 1 to LONGEST words."""
    dice = random.Random(seed)
    return [" ".join(dice.choices(list(WORDS), k=dice.randint(1, LONGEST))) for _ in range(count)]


@pytest.fixture(scope="session")
def language() -> tuple[list[str], Tokenizer]:
    """Sentences to learn from, and a tokenizer that knows every word of them."""
    lines = [*sentences(500, seed=3), *BY_HEART * 10]
    spoken = [*lines, *map(in_english, lines)]
    return lines, Tokenizer.train(spoken, vocab_size=400, kind="bpe", character_coverage=1.0)


def padded(rows: list[list[int]]) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


def learn(model: Any, tokenizer: Tokenizer, lines: list[str], updates: int) -> None:
    """Teach a model the language."""
    optimizer = build_optimizer(model, OptimizerConfig(name="adamw", learning_rate=0.01))
    decay = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda update: 1 - update / updates)
    dice = random.Random(5)
    for _ in range(updates):
        batch = dice.sample(lines, 32)
        source = padded([[*ids, EOS] for ids in tokenizer.encode_batch(batch)])
        rows = tokenizer.encode_batch([in_english(line) for line in batch])
        target = padded([[BOS, *ids, EOS] for ids in rows])
        real = target[:, 1:] != PAD
        features = model.features(source, source != PAD, target[:, :-1])
        loss = cross_entropy(features[real], model.output.weight, None, target[:, 1:][real])
        optimizer.zero_grad()
        loss.smoothed.backward()
        optimizer.step()
        decay.step()


@pytest.fixture(scope="session")
def bundles(
    language: tuple[list[str], Tokenizer], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """The folder of a model of that kind which has learnt the language, or of a random one."""
    lines, tokenizer = language
    longest = max(map(len, tokenizer.encode_batch([*lines, *map(in_english, lines)]))) + 1

    @cache
    def folder(kind: str) -> Path:
        name, _, fresh = kind.partition("-")
        torch.manual_seed(1)
        model = build_model(CONFIGS[name], tokenizer.vocab_size)
        if not fresh:
            learn(model, tokenizer, lines, UPDATES)
        decoding = DecodingConfig(beam=2, batch_size=16)
        if fresh:
            decoding = replace(decoding, max_ratio=0.2, max_extra=5)
        return save_bundle(
            tmp_path_factory.mktemp("cases") / kind,
            model.eval(),
            tokenizer,
            source_language="de",
            target_language="en",
            max_length=longest,
            decoding=decoding,
            card="# card\n",
            metadata={},
        )

    return folder


LEARNT = [pytest.param(kind, marks=pytest.mark.slow) for kind in CONFIGS]
"""Learning takes half a minute."""


@pytest.fixture(params=[*(f"{kind}-random" for kind in CONFIGS), *LEARNT])
def folder(request: pytest.FixtureRequest, bundles: Callable[[str], Path]) -> Path:
    """Each kind of model, trained and random."""
    return bundles(request.param)


@pytest.fixture(params=LEARNT)
def learnt(request: pytest.FixtureRequest, bundles: Callable[[str], Path]) -> Path:
    """Each kind of model, having learnt the language."""
    return bundles(request.param)


NUMBERS = range(1, 21)
SOURCE = {number: f"auf dem berg stehen {number} bäume" for number in NUMBERS}
TARGET = {number: f"there are {number} trees on the mountain" for number in NUMBERS}


def side(lines: dict[int, str], changed: dict[int, str] | None = None, end: str = "\n") -> bytes:
    """Numbered lines as a file, some of them changed."""
    return "".join(line + end for line in (lines | (changed or {})).values()).encode()


def written(folder: Path) -> Path:
    """Our own file of each kind, under the names of the reference ones."""
    pairs = {
        "unequal": (side(SOURCE), side({n: TARGET[n] for n in NUMBERS if n != 13})),
        "blank_each_side": (side(SOURCE, {5: ""}), side(TARGET, {9: ""})),
        "separators": (
            side(SOURCE, {3: "ein\u2028berg", 7: "ein\x85baum", 10: "ein\x0bstern\x1cfällt"}),
            side(TARGET),
        ),
        "crlf_source_only": (side(SOURCE, end="\r\n"), side(TARGET)),
        "lone_cr": (side(SOURCE, {4: "ein\rberg"}), side(TARGET)),
        "bom": (b"\xef\xbb\xbf" + side(SOURCE), side(TARGET)),
        "bad_utf8": (side(SOURCE).replace(b"12 b\xc3\xa4", b"12 b\xe4"), side(TARGET)),
    }
    for name, (source, target) in pairs.items():
        (folder / f"{name}.de").write_bytes(source)
        (folder / f"{name}.en").write_bytes(target)
    lines = ["hund", "", "katze", " ", "\u200b", "ein\u2028haus", "baum\x85hund", "brot\x0ckatze"]
    lines += ["hund </s> katze", "<s> <unk> <pad>", "mond haus " * 99, "der 🐶 schläft"]
    lines += ["👩\u200d👧", "https://a.example/?b=1", "42", "fluss\rmond", "haus"]
    lines += ["LAUTER GROSSE BUCHSTABEN", "der\thund schläft", "\ufeffbaum mitten im text"]
    texts = {
        "translate_lines.txt": "\n".join([*lines, ""]),
        "translate_no_final_newline.txt": "baum\nmond\nbrot",
        "translate_crlf.txt": "baum\r\nmond\r\n\r\nbrot\r\n",
        "blanks.src": "baum\n\nmond\n\n\nbrot\n",
        "quotes_and_na.tsv": '"Erster\tfirst\nnull\tnull\nNA\tNA\n007\t007\n'
        'sag "ja"\tsay "yes"\nNone\tNone\n',
        "evaluate_two.hyp": "the moon is up\na star\n",
        "evaluate_three.ref": "the moon is up\na star\none more\n",
        "zh.hyp": "月亮从山后面慢慢地升起来了\n",
        "zh.ref": "月亮从山后面静静地升起来了\n",
        "sub.hyp": "the moon rose over my house today\n",
        "sub.ref": "the moon rose over the hill today\n",
        "attention_labels.txt": "月が昇る\n$x_1$ %y# {z}\nירח מעל ההר\n🌙\n",
    }
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode())
    return folder


@pytest.fixture(scope="session", params=["ours", "reference"])
def cases(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders with the same names of files: what is written here, and the reference."""
    if request.param == "ours":
        return written(tmp_path_factory.mktemp("ours"))
    given = os.environ.get("KAKEHASHI_SHARED")
    folder = (Path(given) if given else ROOT.parent / "shared") / "cases"
    if not folder.is_dir():
        pytest.skip(f"needs the reference files in {folder}, which is not there")
    return folder


@pytest.fixture
def word_for_word() -> Callable[[str], str | None]:
    """The right translation of a line; None where it holds a word that is not in the language."""

    def translation(line: str) -> str | None:
        words = [] if is_blank(line) else line.strip(" ").split(" ")
        return " ".join(WORDS[w] for w in words) if set(words) <= set(WORDS) else None

    return translation
