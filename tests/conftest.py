"""What every test shares: shapes checked, threads limited, a small corpus, commands at hand."""

import os

# Before torch is imported: tests share their cores with other processes, and OpenMP's threads,
# spinning while they wait for a core that somebody else holds, would slow everything down.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
# No test talks to the network: a library that would like to is told so before it is imported.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_OFFLINE"] = "1"
os.environ["DO_NOT_TRACK"] = "1"

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import torch
from jaxtyping import install_import_hook

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# From here on the shapes written in the signatures of these rooms hold, or the call raises.
install_import_hook(
    [
        "kakehashi.attention",
        "kakehashi.layers",
        "kakehashi.models",
        "kakehashi.decoding",
        "kakehashi.training.objective",
    ],
    "beartype.beartype",
)

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "tests" / "corpus"

hypothesis.settings.register_profile(
    "kakehashi",
    deadline=None,  # a busy machine is not a wrong result
    max_examples=50,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("kakehashi")

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


@dataclass(frozen=True)
class ParallelText:
    """Two files whose lines translate each other, and those lines."""

    source_path: Path
    target_path: Path
    source: list[str]
    target: list[str]


def _parallel(source: Path, target: Path) -> ParallelText:
    sides = [path.read_text(encoding="utf-8").split("\n")[:-1] for path in (source, target)]
    assert len(sides[0]) == len(sides[1]), f"{source.name} and {target.name} are not parallel"
    return ParallelText(source, target, *sides)


@pytest.fixture(scope="session")
def small_corpus() -> ParallelText:
    """132 German-English pairs, written for the tests."""
    return _parallel(CORPUS / "small.de", CORPUS / "small.en")


@pytest.fixture(scope="session")
def small_japanese_corpus() -> ParallelText:
    """42 Japanese-English pairs, written for the tests."""
    return _parallel(CORPUS / "small-ja.ja", CORPUS / "small-ja.en")


@pytest.fixture(scope="session")
def shared_folder() -> Path:
    """Public reference data: KAKEHASHI_SHARED, or ``shared`` beside the repository; or skips."""
    folder = Path(os.environ.get("KAKEHASHI_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"needs the reference data in {folder}, which is not there")
    return folder


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: bytes
    err: str


Kakehashi = Callable[..., Ended]


@pytest.fixture
def kakehashi(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Kakehashi:
    """Run `kakehashi` with some words and bytes on standard input."""
    from kakehashi.commands.main import main

    def run(*words: object, stdin: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "argv", ["kakehashi", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="ascii"))
        capsysbinary.readouterr()
        status = 0
        try:
            main()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        out, err = capsysbinary.readouterr()
        return Ended(status, out, err.decode("utf-8"))

    return run


@pytest.fixture(autouse=True)
def _seed() -> None:
    """Every test starts from the same random numbers, whichever ran before it."""
    torch.manual_seed(20260105)


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> "list[Figure]":
    """The figures drawn during a test."""
    from kakehashi.insight import heatmap as room

    drawn: list[Figure] = []
    original = room.figure_of_panels

    def keep(*arguments: Any) -> "Figure":
        drawn.append(original(*arguments))
        return drawn[-1]

    monkeypatch.setattr(room, "figure_of_panels", keep)
    return drawn
