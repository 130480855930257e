"""The explorer in a real browser: what it says equals the tensors, by pointer, keys and thumb."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.browser import chromium, screen

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.inference.bundle import Bundle
from kakehashi.inference.settings import BundleConfig
from kakehashi.inference.torch_engine import TorchEngine
from kakehashi.inference.translator import Translator
from kakehashi.insight.explorer.component import Scene, scene
from kakehashi.insight.explorer.page import page as made
from kakehashi.models.build import build_model
from kakehashi.models.config import ModelConfig, RNNConfig, TransformerConfig
from kakehashi.symbols import EOS

LINES = [
    "Der Hund schläft.",
    "הכלב ישן, והחתול ער.",
    "<img src=x onerror=document.title=1></script> &amp; $5_$ 猫 🐈",
    "Der alte Mann mit dem langen Bart wartete gestern am Bahnhof auf den Zug.",
]
# Every weight that the heat map says, and those that the pieces of a row show, in hundredths.
READ = """
const panel = document.querySelector(".panel"), canvas = panel.querySelector(".cells canvas");
const says = panel.querySelector(".says"), found = [], tops = new Set();
const [rows, columns] = arguments;
for (let n = 0; n < rows; n += 1) for (let m = 0; m < columns; m += 1) {
  const box = canvas.getBoundingClientRect();
  tops.add(box.top);
  const clientX = box.left + (m + .5) * box.width / columns;
  const clientY = box.top + (n + .5) * box.height / rows;
  canvas.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX, clientY }));
  found.push(says.textContent);
}
canvas.dispatchEvent(new PointerEvent("pointerleave"));
return [found, tops.size];
"""


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def translators(small_corpus: Any) -> list[Translator]:
    tokenizer = Tokenizer.train([*small_corpus.source, *small_corpus.target], vocab_size=401)
    search = DecodingConfig(beam=3, max_ratio=0.2, max_extra=3)

    def translator(model: ModelConfig) -> Translator:
        torch.manual_seed(7)
        built = build_model(model, 401).eval()
        built.output.restrict(torch.tensor([EOS, *tokenizer.ordinary_pieces()]))
        return Translator.of(
            Bundle(built, tokenizer, BundleConfig(model, 401, "de", "en", 300, search, "", ""))
        )

    return [
        translator(
            TransformerConfig(
                encoder_layers=1, decoder_layers=2, d_model=24, d_feedforward=37, n_heads=3
            )
        ),
        translator(RNNConfig(d_embedding=14, d_hidden=17, d_attention=11, d_maxout=14)),
    ]


@pytest.fixture(scope="module")
def scenes(translators: list[Translator]) -> list[Scene]:
    return [scene(translator, line) for line in LINES for translator in translators]


@pytest.fixture(scope="module")
def file(window: Any, scenes: list[Scene], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explorer") / "page.html"
    path.write_bytes(made(scenes))
    return path


class Page:
    """The explorer, opened anew."""

    def __init__(self, window: Any, file: Path) -> None:
        self.window = window
        window.get(file.as_uri())

    def all(self, selector: str) -> Any:
        return self.window.find_elements("css selector", selector)

    def texts(self, selector: str) -> list[str]:
        return [one.get_attribute("textContent") for one in self.all(selector)]

    def press(self, *keys: str) -> None:
        self.window.switch_to.active_element.send_keys(*keys)

    def focused(self) -> str:
        focus = self.window.switch_to.active_element
        return str(focus.find_element("css selector", "bdi").get_attribute("textContent"))

    def click(self, text: str) -> None:
        """The button of that text."""
        (button,) = [one for one in self.all("button") if one.text == text]
        button.click()

    def choose(self, sentence: int) -> None:
        self.all(".top option")[sentence].click()


@pytest.fixture
def page(window: Any, file: Path) -> Iterator[Page]:
    yield Page(window, file)
    assert [entry["message"] for entry in window.get_log("browser")] == []


KINDS = {
    "cross": "Cross: translation to source",
    "encoder": "Encoder: source to itself",
    "decoder": "Decoder: translation to itself",
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_said_equals_the_tensors(
    kind: str, page: Page, translators: list[Translator], scenes: list[Scene]
) -> None:
    translator = translators[0]
    engine = translator.engine
    assert isinstance(engine, TorchEngine)
    row = translator.tokenizer.encode(LINES[0])
    (found,) = engine.search([row], config=translator.config.decoding, n_best=3)
    weights = getattr(engine.maps(row, found[0].ids), kind)[0][0]
    page.click(KINDS[kind])
    expected = {
        "1": weights[0],
        "3": weights[2],
        "mean": weights.mean(0),
        "max": weights.amax(0),
    }
    for head, values in expected.items():
        at = {"1": 0, "3": 2, "mean": 3, "max": 4}[head]
        page.all(".heads button")[at].click()
        rows, columns = values.shape
        said, places = page.window.execute_script(READ, rows, columns)
        assert places == 1  # what is said moves nothing under the pointer
        figures = [float(one.rsplit(" ", 1)[1]) for one in said]
        assert figures == pytest.approx(values.flatten().tolist(), abs=0.5e-4 + 1e-5)
        assert len(set(figures)) > 4
    entropies = -(weights * weights.clamp_min(1e-30).log2()).sum(-1).mean(-1)
    shown = [float(one) for one in page.texts(".heads tr:nth-child(2) button")[:3]]
    assert shown == pytest.approx(entropies.tolist(), abs=0.006)
    # a head that looks at all alike: a step of the decoder reads one piece more than that before
    rows, columns = weights.shape[1:]
    read = torch.arange(1, rows + 1) if kind == "decoder" else torch.full((rows,), columns)
    assert f"{read.log2().mean():.1f} at all alike" in page.texts(".side p")[0]


def test_pointing_lights_what_a_piece_attends_to(page: Page, scenes: list[Scene]) -> None:
    from selenium.webdriver import ActionChains

    shown = scenes[0]
    first = shown.steps[shown.paths[0].steps[1]].cross[1].mean(0)
    page.window.execute_script("scrollTo(0, 0)")
    ActionChains(page.window).move_to_element(
        page.all(".tokens:nth-of-type(3) .token")[1]
    ).perform()
    figures = page.texts(".tokens:nth-of-type(1) small")
    expected = [str(round(100 * float(w))) if w >= 0.005 else "" for w in first]
    assert figures == expected
    assert len(page.all(".stage path")) == sum(one != "" for one in expected)
    ActionChains(page.window).move_to_element(
        page.all(".tokens:nth-of-type(1) .token")[0]
    ).perform()
    assert "is looked at by" in page.texts(".says")[0]
    ActionChains(page.window).move_to_element(page.all("h1")[0]).perform()
    assert set(page.texts(".tokens small")) == {""}


def test_stepping(page: Page, scenes: list[Scene]) -> None:
    from selenium.webdriver import Keys

    path = scenes[0].paths[0]
    page.click("→")
    page.click("→")
    assert page.texts(".stepper span") == [f"Step 2 of {len(path.steps)}"]
    assert page.texts(".considered h3") == ["What step 2 could write"]
    assert page.texts(".written bdi") == [path.output[0].text]
    assert len(page.texts(".candidates li")) in (5, 6)
    assert page.texts(".candidates .chosen bdi") == [path.output[1].text]
    assert len(page.all(".token.later")) == len(path.steps) - 2
    assert "is written, looking at" in page.texts("[aria-live=polite]")[0]
    page.all(".stepper input")[0].send_keys(Keys.ARROW_RIGHT)
    assert page.texts(".stepper span") == [f"Step 3 of {len(path.steps)}"]
    page.click("All")
    assert not page.all(".token.later")


def test_keys_are_enough(page: Page, scenes: list[Scene]) -> None:
    from selenium.webdriver import Keys

    source, output = scenes[0].source, scenes[0].paths[0].output
    page.window.execute_script("document.querySelector('.tokens .token').focus()")
    page.press(Keys.ARROW_RIGHT)
    assert page.focused() == source[1].text
    page.press(Keys.END)
    assert page.focused() == "end"
    page.press(Keys.HOME, Keys.ARROW_DOWN)
    assert page.focused() == output[0].text
    page.press(Keys.ENTER)
    assert page.texts(".stepper span")[0].startswith("Step 1 of")
    page.press(Keys.ESCAPE)
    assert page.texts(".stepper span")[0].startswith("All ")
    page.window.execute_script("document.querySelector('.heads [tabindex=\"0\"]').focus()")
    page.press(Keys.ARROW_LEFT)
    checked = page.all(".heads [aria-checked=true]")
    assert [one.get_attribute("aria-label").split(",")[1] for one in checked] == [" head 3"]
    assert "layer 2 of 2, head 3" in page.texts(".picture h3")[0]
    page.window.execute_script("document.querySelector('.cells canvas').focus()")
    page.press(Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    weight = scenes[0].steps[scenes[0].paths[0].steps[1]].cross[1][2, 1]
    assert page.texts(".says")[0].endswith(f": {float(weight):.4f}")


def test_alternatives_and_the_beam(page: Page, scenes: list[Scene]) -> None:
    shown = scenes[0]
    assert page.texts(".list bdi") == [path.text or "(nothing)" for path in shown.paths]
    ended = sum(path.finished for path in shown.paths)
    assert len(page.all(".node")) == sum(map(len, shown.beam)) + ended
    page.all(".list button")[1].click()
    labels = [label.text for label in shown.paths[1].output]
    assert page.texts(".tokens:nth-of-type(3) bdi") == labels
    alive = [step for step in shown.paths[1].steps[1:] if step is not None]
    slots = {slot.step for slots in shown.beam for slot in slots}
    taken = len([step for step in alive if step in slots]) + shown.paths[1].finished
    assert len(page.all(".node.taken")) == taken
    assert page.focused() == shown.paths[1].text


def test_both_models(page: Page) -> None:
    page.click("RNN")
    assert page.window.switch_to.active_element.text == "RNN"
    assert page.texts(".panel h2") == ["RNN"]
    assert page.texts(".panel header button") == [KINDS["cross"]]
    assert len(page.all(".heads button")) == 1
    page.click("Side by side")
    assert page.window.switch_to.active_element.text == "Side by side"
    assert page.texts(".panel h2") == ["Transformer", "RNN"]


def test_one_line_with_two_translations(
    window: Any, translators: list[Translator], tmp_path: Path
) -> None:
    file = tmp_path / "page.html"
    given = ("The dog sleeps.", "A dog is asleep.")
    shown = [scene(one, LINES[0], text) for text in given for one in translators]
    file.write_bytes(made(shown))
    page = Page(window, file)
    assert page.texts("option") == [f"{LINES[0]} \u2192 {text}" for text in given]
    assert page.texts(".top button") == ["Transformer", "RNN", "Side by side"]
    page.choose(1)
    written = [label.text for label in shown[2].paths[0].output]
    assert page.texts(".tokens:nth-of-type(3) bdi") == written


def test_text_is_text_in_every_script(page: Page, scenes: list[Scene]) -> None:
    page.choose(1)
    box = page.all(".tokens")[0]
    assert box.get_attribute("dir") == "rtl" and box.get_attribute("lang") == "de"
    places = [one.location["x"] for one in page.all(".tokens:nth-of-type(1) .token")[:3]]
    assert places == sorted(places, reverse=True)
    page.choose(2)
    assert page.window.title.startswith("Seeing it attend")
    assert page.all("img, .panel script") == []
    texts = page.texts(".tokens:nth-of-type(1) bdi")
    assert texts == [label.text for label in scenes[4].source]
    assert "🐈¹" in texts and "_" in "".join(texts)
    assert page.window.execute_script("return performance.getEntriesByType('resource').length") == 0


@pytest.mark.parametrize(("width", "scheme"), [(320, "light"), (1280, "dark")])
def test_it_fits_every_screen(page: Page, width: int, scheme: str) -> None:
    axe = os.environ.get("KAKEHASHI_AXE")
    with screen(page.window, width, scheme):
        page.choose(3)
        page.click("→")
        measure = "return [document.documentElement.scrollWidth, innerWidth]"
        needed, there = page.window.execute_script(measure)
        assert needed <= there
        for button in page.all("button:not(.token), select, input"):
            assert button.size["height"] >= 24
        if axe:
            page.window.execute_script(Path(axe).read_text(encoding="utf-8"))
            found = page.window.execute_async_script(
                "axe.run(document).then((r) => arguments[0](r.violations.map((v) => v.id)))"
            )
            assert found == []
