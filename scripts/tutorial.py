"""Run the tutorial, docs/attention.md, from top to bottom; write what it prints and draws into it.

    python scripts/tutorial.py

Its Japanese translation has the same code, and gets the same output. tests/test_tutorial.py runs
the same and compares.
"""

import contextlib
import io
import os
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = (DOCS / "attention.md", DOCS / "attention.ja.md")

BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)
"""Code, and what it prints, if anything, right after it."""


def blocks(page: str) -> list[tuple[str, str]]:
    """The code blocks of a page, each with the output the page shows for it."""
    return [(code, shown or "") for code, shown in BLOCK.findall(page)]


def run(page: str, folder: Path) -> list[str]:
    """Run a page's code blocks in order, as one program in a folder; what each of them prints."""
    names: dict[str, object] = {"__name__": "tutorial"}
    printed = []
    with contextlib.chdir(folder):
        for number, (code, _) in enumerate(blocks(page), 1):
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(code, f"<block {number}>", "exec"), names)
            printed.append(output.getvalue())
    return printed


def filled(page: str, printed: list[str]) -> str:
    """The page with other output after its code blocks."""
    outputs = iter(printed)

    def block(found: re.Match[str]) -> str:
        output = next(outputs)
        shown = f"\n```text\n{output}```\n" if output else ""
        return f"```python\n{found[1]}```\n{shown}"

    return BLOCK.sub(block, page)


def main() -> None:
    """Run the English page, and write its output into both."""
    printed = run(PAGES[0].read_text("utf-8"), DOCS)
    for page in PAGES:
        if page.exists():
            page.write_text(filled(page.read_text("utf-8"), printed), "utf-8")
            print(os.path.relpath(page))


if __name__ == "__main__":
    main()
