"""The page in a real browser: typing, pointing, keys, a phone, and what goes wrong."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.browser import chromium, screen

from kakehashi.errors import ConfigError
from kakehashi.inference.request import Request
from kakehashi.inference.translator import Translator
from kakehashi.serving.backend import TranslatorBackend
from kakehashi.serving.schema import Word
from kakehashi.serving.tasks import Attending

if TYPE_CHECKING:
    from selenium.webdriver.remote.webelement import WebElement

by_css = "css selector"


class Page:
    """The page of a service, in a window."""

    def __init__(self, window: Any, served: Any) -> None:
        self.window = window
        self.served = served
        window.get(f"http://127.0.0.1:{served.port}/")
        self.wait("#languages", "German to English")

    def all(self, selector: str) -> "list[WebElement]":
        found: list[WebElement] = self.window.find_elements(by_css, selector)
        return found

    def one(self, selector: str) -> "WebElement":
        (found,) = self.all(selector)
        return found

    def texts(self, selector: str) -> list[str]:
        return [element.text for element in self.all(selector)]

    def wait(self, selector: str, text: str) -> None:
        """Until the text of the first such element holds that."""

        def shown() -> bool:
            return bool(
                self.window.execute_script(
                    "const e = document.querySelector(arguments[0]);"
                    "return !!e && e.textContent.includes(arguments[1])",
                    selector,
                    text,
                )
            )

        self.served.wait(shown)

    def type(self, *keys: str) -> None:
        self.one("#source").send_keys(*keys)

    def press(self, *keys: str) -> None:
        """Keys to whatever has the focus."""
        self.window.switch_to.active_element.send_keys(*keys)

    def focused(self) -> str:
        return str(self.window.switch_to.active_element.text)

    def complaints(self) -> list[str]:
        """What the browser wrote into its console: scripts that fail, policies that forbid."""
        return [entry["message"] for entry in self.window.get_log("browser")]


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def page(window: Any, running: Any, reverser: Any) -> Iterator[Page]:
    with running(reverser, characters=200, lines=9, queue=9, beam=8) as served:
        shown = Page(window, served)
        yield shown
        # that there was no answer, or none with success, is no fault of the page
        found = [line for line in shown.complaints() if "Failed to load resource" not in line]
        assert found == []


def test_typing_is_enough(page: Page) -> None:
    page.type("der Hund bellt")
    page.wait(".target", "red dnuH tlleb")
    assert page.texts(".from") == ["der Hund bellt"]
    assert page.one("#announcement").get_attribute("textContent") == "red dnuH tlleb"
    assert page.one("#result").get_attribute("aria-busy") == "false"
    assert page.one(".target").get_attribute("lang") == "en"
    assert page.one("#source").get_attribute("lang") == "de"


def test_confidence_is_shown_by_more_than_colour(page: Page) -> None:
    page.type("eins zwei drei")
    page.wait(".target", "ierd")
    words = page.all(".target .word")
    styles = [word.value_of_css_property("text-decoration-style") for word in words]
    lines = [word.value_of_css_property("text-decoration-line") for word in words]
    assert lines == ["none", "underline", "underline"]
    assert styles[1:] == ["dotted", "wavy"]
    assert page.one("#legend").is_displayed()
    assert "probability" in page.one("#legend").text


def test_pointing_shows_where_a_word_comes_from(page: Page) -> None:
    from selenium.webdriver import ActionChains

    page.type("der Hund bellt")
    page.wait(".target", "tlleb")
    ActionChains(page.window).move_to_element(page.all(".target .word")[1]).perform()
    assert page.texts(".linked") == ["Hund"]
    assert page.one("#word").text == "“dnuH”: 40 %, from “Hund”"
    ActionChains(page.window).move_to_element(page.all(".from .word")[2]).perform()
    assert page.texts(".linked") == ["tlleb"]
    ActionChains(page.window).move_to_element(page.one("h1")).perform()
    assert page.texts(".linked") == []


def test_keys_are_enough(page: Page) -> None:
    from selenium.webdriver import Keys

    page.type("der Hund bellt", Keys.CONTROL, Keys.ENTER)
    page.wait(".target", "tlleb")
    for _ in range(9):  # past the buttons, wherever they are
        page.press(Keys.TAB)
        if page.focused() == "red":
            break
    assert page.texts(".linked") == ["der"]
    page.press(Keys.ARROW_RIGHT)
    assert (page.focused(), page.texts(".linked")) == ("dnuH", ["Hund"])
    page.press(Keys.END)
    assert (page.focused(), page.texts(".linked")) == ("tlleb", ["bellt"])
    page.press(Keys.ARROW_RIGHT)
    assert page.focused() == "tlleb"
    page.press(Keys.ENTER)
    assert page.one("[aria-pressed=true].word").text == "tlleb"
    page.press(Keys.ESCAPE)
    assert page.texts(".linked") == []
    page.press(Keys.TAB)
    assert page.focused() == "der"
    page.press(Keys.TAB)
    assert page.focused() == "Alternatives"
    page.press(Keys.TAB, Keys.TAB, Keys.ENTER)
    page.wait(".target", "red dnuH tlleb 1")
    assert "red dnuH tlleb 1" in page.focused()
    assert page.one("#announcement").get_attribute("textContent") == "red dnuH tlleb 1"


def test_each_line_by_itself_with_its_direction(page: Page) -> None:
    page.type("eins\n\nשלום עולם\nab")
    page.wait("#lines", "ba")
    directions = [box.value_of_css_property("direction") for box in page.all(".target")]
    assert directions == ["ltr", "rtl", "ltr"]
    from selenium.webdriver import Keys

    page.window.execute_script("document.querySelectorAll('.target')[1].children[0].focus()")
    page.press(Keys.ARROW_LEFT)
    assert page.focused() == "םלוע"


def test_text_is_never_markup(page: Page, reverser: Any) -> None:
    evil = "<img/src=x/onerror=document.title=1> <b>fett</b>"
    reverser._answer = lambda task, text: reverser._translation(task, text.text).model_copy(
        update={"warnings": [evil]}
    )
    page.type(evil)
    page.wait(".target", ">")
    assert evil in page.one(".warning").text
    assert page.all("main img, main b") == []
    page.one("#card summary").click()
    assert "<script>never()</script>" in page.one("#readme").text
    assert page.window.title == "German to English · Kakehashi"


def test_what_goes_wrong_is_said(page: Page, reverser: Any) -> None:
    page.type("a" * 201)
    page.wait("#error", "201 characters")
    assert page.one("#error").is_displayed() and page.one("#error").get_attribute("role") == "alert"
    assert page.one("#count").text == "201 of 200 characters"
    page.one("#source").clear()
    page.type("ab")
    page.wait(".target", "ba")
    assert not page.one("#error").is_displayed()
    page.type("\nc" * 9)
    page.wait("#error", "10 texts")
    assert not page.all(".target")  # which would be that of another text
    assert not page.one("#copy").is_displayed()


def test_overload_is_said(window: Any, running: Any, reverser: Any) -> None:
    with running(reverser, lines=1, queue=1) as served:
        shown = Page(window, served)
        shown.type("a\nb")
        shown.wait("#error", "2 texts")
    shown.one("#source").send_keys("c")
    shown.wait("#error", "cannot be reached")


def test_typing_on_drops_the_request_before(page: Page, reverser: Any) -> None:
    reverser.gate.clear()
    page.type("erst")
    page.served.wait(reverser.begun.is_set)
    page.type(" dann")
    page.served.wait(lambda: len(page.served.service.waiting) == 1)
    page.type(" zuletzt")
    last = [Request("erst dann zuletzt")]
    waiting = page.served.service.waiting
    page.served.wait(lambda: [one.text for one in waiting._sentences] == last)
    reverser.gate.set()
    page.wait(".target", "tsre nnad tzteluz")
    assert len(reverser.batches) == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 375, 1280])
def test_it_fits_every_screen(page: Page, width: int, scheme: str) -> None:
    with screen(page.window, width, scheme):
        page.type("der Hund bellt " + "x" * 90)
        page.wait(".target", "tlleb")
        measure = "return [document.documentElement.scrollWidth, innerWidth]"
        needed, there = page.window.execute_script(measure)
        assert needed <= there
        dark = page.window.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (dark == "rgb(21, 23, 27)") == (scheme == "dark")
        for button in page.all("button"):
            if button.is_displayed():
                assert button.size["height"] >= 24


def test_how_it_attends(page: Page, reverser: Any, model_folder: Path) -> None:
    backend = TranslatorBackend(Translator.load(model_folder), 4)
    plain = reverser._answer
    asked: list[str] = []

    def answer(task: Any, text: Any) -> Any:
        if not isinstance(task, Attending):
            return plain(task, text)
        asked.append(text.text)
        return backend.run(task, [text])[0]

    reverser._answer = answer
    page.type("Der Hund bellt.\n\nEine Katze")
    page.wait(".target", "reD")
    assert asked == []  # nobody has looked yet
    page.one("#attention summary").click()
    page.wait("#attention-said", "Each line")
    assert asked == ["Der Hund bellt.", "Eine Katze"]
    assert len(page.all("#attention .attention-viewer .heads button")) == 5
    assert len(page.all("#attention .attention-viewer option")) == 2
    page.one("#source").send_keys("n")
    page.wait("#attention-place", "Katzen")
    assert asked[2:] == ["Der Hund bellt.", "Eine Katzen"]


def test_a_line_that_is_not_shown_takes_nothing_from_the_others(
    page: Page, reverser: Any, model_folder: Path
) -> None:
    backend = TranslatorBackend(Translator.load(model_folder), 4)
    plain = reverser._answer

    def answer(task: Any, text: Any) -> Any:
        if not isinstance(task, Attending):
            return plain(task, text)
        if text.text == "ab":
            raise ConfigError("it has too many pieces")
        return backend.run(task, [text])[0]

    reverser._answer = answer
    page.type("ab\nHund")
    page.wait(".target", "ba")
    page.one("#attention summary").click()
    page.wait("#attention-said", "Without one of them: it has too many pieces.")
    page.wait("#attention-place", "Hund")


def test_an_engine_that_does_not_show_how_it_attends(page: Page, reverser: Any) -> None:
    plain = reverser._answer

    def answer(task: Any, text: Any) -> Any:
        if isinstance(task, Attending):
            raise ConfigError("the ctranslate2 engine does not show how it attends")
        return plain(task, text)

    reverser._answer = answer
    page.type("ab")
    page.wait(".target", "ba")
    page.one("#attention summary").click()
    page.wait("#attention-said", "The ctranslate2 engine does not show how it attends")


def test_a_word_of_nothing_known(page: Page, reverser: Any) -> None:
    """Words that are spelt otherwise than the text they belong to: the text stands alone."""
    odd = Word(text="other", probability=0.5, source=[0])
    plain = reverser._translation

    def answer(task: Any, text: Any) -> Any:
        found = plain(task, text.text)
        found.candidates[0].words = [odd]
        return found

    reverser._answer = answer
    page.type("ab cd")
    page.wait(".target", "ba dc")
    assert page.all(".target .word") == []
