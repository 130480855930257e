"""Weight of the explorer's page, and how soon a browser shows it.

python scripts/benchmark/explorer.py MODEL [PIECES]

A sentence of 60 pieces (or PIECES) of the project's own words and a translation of as many, by the
model's default beam, written as `kakehashi explore` writes it; then opened ROUNDS times in Chromium
without a window, from the disk, its cache empty. Needs chromium, chromedriver and selenium.
"""

import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from kakehashi.inference.translator import Translator
from kakehashi.insight.explorer.component import scene
from kakehashi.insight.explorer.page import page

WORDS = (
    "Am Abend saß der alte Lehrer mit seinen Freunden am Fluss und erzählte ihnen von der langen "
    "Reise, die er als junger Mann gemacht hatte, von den Bergen im Norden, von einer kleinen "
    "Stadt am Meer und von den Menschen, die ihm dort geholfen hatten, als er kein Geld mehr "
    "hatte und nicht wusste, wie er wieder nach Hause kommen sollte, und alle "
    "hörten ihm schweigend zu."
)
ROUNDS = 7
PAINT = "return performance.getEntriesByType('paint').map((entry) => [entry.name, entry.startTime])"
WORKED = "TaskDuration"
READY = "return performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"


def main(arguments: list[str]) -> None:
    """Print kilobytes and milliseconds."""
    model, pieces = arguments[0], int(arguments[1]) if len(arguments) > 1 else 60
    translator = Translator.load(model)
    tokenizer = translator.tokenizer
    line = tokenizer.decode((tokenizer.encode(WORDS) * 4)[: pieces - 1])
    shown = scene(translator, line)
    content = page([shown])
    print(
        f"{len(shown.source)} pieces in, {len(shown.paths[0].output)} out, "
        f"{len(shown.paths)} hypotheses, {len(shown.steps)} steps: {len(content) / 1000:,.0f} kB"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "page.html")
        path.write_bytes(content)
        painted, ready, worked = opened(path, folder)
    print(f"first contentful paint {median(painted):.0f} ms (most {max(painted):.0f})")
    print(f"all drawn              {median(ready):.0f} ms (most {max(ready):.0f})")
    print(f"processor time of it   {median(worked):.0f} ms (most {max(worked):.0f})")


def opened(path: Path, folder: str) -> tuple[list[float], list[float], list[float]]:
    """Milliseconds from the start of each navigation to its first paint, and until all is there.

    The third are those that the page's own thread was on a processor, whatever else runs.
    """
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/p"):
        options.add_argument(argument)
    window = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
    painted, ready, worked = [], [], []
    try:
        window.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        for _ in range(ROUNDS):
            window.get("about:blank")
            window.get(path.as_uri())
            entries: list[tuple[str, float]] = []
            while not entries:
                entries = window.execute_script(PAINT)
            painted.append(dict(entries)["first-contentful-paint"])
            ready.append(float(window.execute_script(READY)))
            found = window.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
            worked.append(1000 * next(one["value"] for one in found if one["name"] == WORKED))
    finally:
        window.quit()
    return painted, ready, worked


if __name__ == "__main__":
    main(sys.argv[1:])
