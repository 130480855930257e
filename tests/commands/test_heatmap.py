"""`kakehashi heatmap`: a picture, and what it shows."""

from pathlib import Path
from typing import Any

import pytest

TEXT = "Der Hund kostet $5_$ = 猫?"


@pytest.mark.parametrize("options", [[], ["--target", "The dog.", "--layer", 1, "--head", 1]])
def test_draws_a_picture(
    kakehashi: Any, model_folder: Path, tmp_path: Path, options: list[Any]
) -> None:
    picture = tmp_path / "map.png"
    ended = kakehashi("heatmap", model_folder, "--text", TEXT, "-o", picture, *options)
    assert (ended.status, ended.out) == (0, b"")
    assert f"{picture}: cross-attention, layer 1 of 1, one head" in ended.err
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_one_command_draws_several_sentences_in_several_formats(
    kakehashi: Any, model_folder: Path, tmp_path: Path, figures: list[Any]
) -> None:
    texts = ["--text", TEXT, "--text", "Die Katze.", "--words", "--head", "all"]
    paths = [tmp_path / f"map.{kind}" for kind in ("png", "svg", "pdf")]
    outputs = [word for path in paths for word in ("-o", path)]
    ended = kakehashi("heatmap", model_folder, *texts, *outputs)
    assert ended.status == 0, ended.err
    assert len(ended.err.splitlines()) >= 3
    assert [path.read_bytes()[:4] for path in paths] == [b"\x89PNG", b"<?xm", b"%PDF"]
    (figure,) = figures
    columns = [label.get_text() for label in figure.axes[1].get_xticklabels()]
    assert columns == ["Die", "Katze", ".", "</s>"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "map.txt"], "map.txt"),
        (["-o", "map.png", "--layer", 2], "layers 1 to 1"),
        (["-o", "map.png", "--head", 2], "heads 1 to 1"),
        (["-o", "map.png", "--kind", "decoder"], "no decoder self-attention"),
        (["-o", "map.png", "--target", "a", "--target", "b"], "1 sentences and 2 translations"),
        (["-o", "/dev/null/map.png"], "cannot write"),
    ],
)
def test_what_cannot_be_drawn_is_said(
    kakehashi: Any,
    model_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[Any],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = kakehashi("heatmap", model_folder, "--text", "Hund", *options)
    assert ended.status == 1
    assert message in ended.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("head", ["0", "every", "-1", "1.5"])
def test_a_head_is_a_number_or_mean(kakehashi: Any, model_folder: Path, head: str) -> None:
    ended = kakehashi("heatmap", model_folder, "--text", "x", "-o", "map.png", "--head", head)
    assert ended.status == 2
