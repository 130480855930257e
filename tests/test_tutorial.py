"""The tutorial runs from top to bottom, prints and draws what it shows, in both languages."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).resolve().parents[1]
NEAR = 15
"""Points by which a percentage may differ: it comes from training, which no two machines repeat."""


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tutorial", ROOT / "scripts" / "tutorial.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tutorial = script()
ENGLISH, JAPANESE = (page.read_text("utf-8") for page in tutorial.PAGES)


def untrained(page: str) -> str:
    """The page with models that see next to nothing: a few seconds less."""
    return re.sub(r"updates=\d+", "updates=2", page)


def test_every_block_runs_and_prints_what_needs_no_training(tmp_path: Path) -> None:
    shown = tutorial.blocks(ENGLISH)
    printed = tutorial.run(untrained(ENGLISH), tmp_path)
    assert len(list(tmp_path.rglob("*.svg"))) == 3
    learnt = ("train(", "write(", "share_right(", "right_without(")
    same = [
        (said, output)
        for said, (code, output) in zip(printed, shown, strict=True)
        if not any(word in code for word in learnt)
    ]
    assert len(same) > 15
    for said, output in same:
        assert said == output


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path]:
    """What each block printed, and the folder with what they drew."""
    folder = tmp_path_factory.mktemp("tutorial")
    return tutorial.run(ENGLISH, folder), folder


def percentages(text: str) -> list[int]:
    return [int(found) for found in re.findall(r"(\d+)%", text)]


def without(text: str) -> list[str]:
    """The words of a text, percentages aside."""
    return re.sub(r"\d+%", "%", text).split()


@pytest.mark.slow
def test_every_block_prints_what_the_page_shows(ran: tuple[list[str], Path]) -> None:
    shown = [output for _, output in tutorial.blocks(ENGLISH)]
    for number, (printed, output) in enumerate(zip(ran[0], shown, strict=True), 1):
        assert without(printed) == without(output), f"block {number}"
        assert percentages(printed) == pytest.approx(percentages(output), abs=NEAR)


def labels(picture: Path) -> list[str]:
    """What a picture says that it shows."""
    tree = ET.parse(picture).getroot()
    return [element.text or "" for element in tree.iter() if element.tag.endswith("}description")]


@pytest.mark.slow
def test_the_pictures_are_those_that_the_code_draws(ran: tuple[list[str], Path]) -> None:
    drawn = sorted(path.relative_to(ran[1]) for path in ran[1].rglob("*.svg"))
    assert len(drawn) == 3
    for picture in drawn:
        assert labels(ran[1] / picture) == labels(tutorial.DOCS / picture)
        assert labels(tutorial.DOCS / picture)[0].startswith(("rows", "head", "what"))
    for page in (ENGLISH, JAPANESE):
        assert sorted(map(Path, re.findall(r"\]\((images/.*?)\)", page))) == drawn


def test_the_translation_has_the_same_code_and_output() -> None:
    assert tutorial.blocks(JAPANESE) == tutorial.blocks(ENGLISH)
    assert [page.count("\n## ") for page in (ENGLISH, JAPANESE)] == [11, 11]
    assert "(attention.ja.md)" in ENGLISH and "(attention.md)" in JAPANESE


def test_output_is_written_after_the_code_that_printed_it(tmp_path: Path) -> None:
    page = "a\n```python\nprint(1)\n```\n\n```text\nold\n```\n\n```python\nx = 2\n```\nb\n"
    printed = tutorial.run(page, tmp_path)
    assert printed == ["1\n", ""]
    written = page.replace("old", "1")
    assert tutorial.filled(page, printed) == written
    assert tutorial.filled(written, printed) == written
    with pytest.raises(ZeroDivisionError):
        tutorial.run("```python\n1 / 0\n```\n", tmp_path)
