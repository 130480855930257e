"""`kakehashi explore`: one page, for one model or two, or one sentence that says why not."""

from pathlib import Path
from typing import Any

import pytest

TEXT = "Der Hund kostet $5_$ </script>= 猫?"


def test_writes_one_page(kakehashi: Any, model_folder: Path, tmp_path: Path) -> None:
    page, lines = tmp_path / "page.html", tmp_path / "lines.de"
    lines.write_text(f"{TEXT}\n\nEine Katze.\n", encoding="utf-8")
    given = ["-i", lines, "--with", model_folder, "--beam", 2, "-o", page]
    ended = kakehashi("explore", model_folder, *given)
    assert (ended.status, ended.out) == (0, b"")
    assert f"{page}: 2 sentences, " in ended.err
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and text.count("</script>") == 2
    # two models of one kind are told apart by their folders
    assert text.count('"model":"1: ') == text.count('"model":"2: ') == 2
    assert text.count('"line":') == 4
    assert "猫" in text


def test_a_translation_to_follow(kakehashi: Any, model_folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    given = ["--text", "Hund", "--target", "The dog.", "-o", page]
    assert kakehashi("explore", model_folder, *given).status == 0
    assert '"text":"The dog."' in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--text", "x", "-o", "page.txt"], "page.txt"),
        (["-o", "page.html"], "--text"),
        (["--text", "x", "-i", "no.de", "-o", "page.html"], "either"),
        (["-i", "no.de", "-o", "page.html"], "no.de"),
        (["--text", "x", "--target", "a", "--target", "b", "-o", "page.html"], "2 --target for 1"),
        (["--text", " ", "-o", "page.html"], "sentence 1: the text has no visible"),
        (["--text", "x", "-o", "/dev/null/page.html"], "cannot write"),
        (["--text", "x", "-o", "page.html", "--with", "nowhere"], "nowhere"),
    ],
)
def test_what_cannot_be_shown_is_said(
    kakehashi: Any,
    model_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = kakehashi("explore", model_folder, *options)
    assert ended.status == 1
    assert message in ended.err and ended.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
