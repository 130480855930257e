"""The report of a run in a real browser: it opens in silence, fits, and its viewer works."""

import os
from pathlib import Path
from typing import Any

from tests.browser import chromium, screen


def test_the_report_opens_fits_and_attends(finished_run: Path, tmp_path: Path) -> None:
    axe = os.environ.get("KAKEHASHI_AXE")
    with chromium(tmp_path / "profile") as window:
        for width, scheme in ((320, "light"), (1280, "dark")):
            with screen(window, width, scheme):
                window.get((finished_run / "report.html").as_uri())
                fits = "return [document.documentElement.scrollWidth, innerWidth]"
                needed, there = window.execute_script(fits)
                assert needed <= there
                (viewer,) = window.find_elements("css selector", ".attention-viewer")
                assert len(viewer.find_elements("css selector", ".top option")) > 1
                said = points_at_the_first_weight(window)
                assert 0 <= float(said.rsplit(" ", 1)[1]) <= 1
                labels = window.execute_script(OUTSIDE)
                assert labels == []
                if axe:
                    window.execute_script(Path(axe).read_text(encoding="utf-8"))
                    found = window.execute_async_script(
                        "axe.run(document).then((r) => arguments[0](r.violations.map((v) => v.id)))"
                    )
                    assert found == []
                assert [entry["message"] for entry in window.get_log("browser")] == []


# Labels of charts that reach over the edge of their picture.
OUTSIDE = """
return [...document.querySelectorAll(".chart > svg")].flatMap((svg) => {
  const frame = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].filter((text) => {
    const box = text.getBoundingClientRect();
    return box.left < frame.left || box.right > frame.right || box.bottom > frame.bottom;
  }).map((text) => text.textContent);
});
"""


def points_at_the_first_weight(window: Any) -> str:
    """What the viewer says of it."""
    said: str = window.execute_script(
        """
        const panel = document.querySelector(".attention-viewer .panel");
        const canvas = panel.querySelector(".cells canvas");
        const box = canvas.getBoundingClientRect();
        const [clientX, clientY] = [box.left + 2, box.top + 2];
        canvas.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX, clientY }));
        return panel.querySelector(".says").textContent;
        """
    )
    return said
