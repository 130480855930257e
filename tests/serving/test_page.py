"""The page as it is sent: nothing from elsewhere, nothing that its policy forbids, contrast."""

import base64
import hashlib
import re

import pytest
from tests.contrast import contrast

from kakehashi.serving.page import CONTENT_POLICY, PAGE

TEXT = PAGE.decode()
STYLE = re.search(r"<style>(.*)</style>", TEXT, re.DOTALL)[1]  # type: ignore[index]
SCRIPT = re.search(r"<script>(.*)</script>", TEXT, re.DOTALL)[1]  # type: ignore[index]


def digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_policy_lets_this_style_and_this_script_run_and_no_other() -> None:
    policy = dict(part.split(" ", 1) for part in CONTENT_POLICY.split("; "))
    assert policy["style-src"] == f"'sha256-{digest(STYLE)}'"
    assert policy["script-src"] == f"'sha256-{digest(SCRIPT)}'"
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert "unsafe" not in CONTENT_POLICY


def test_nothing_comes_from_elsewhere_and_text_is_text() -> None:
    name = "http://www.w3.org/2000/svg"  # of SVG's elements, which nobody asks
    assert not re.findall(r"https?://|//\w+\.|@import|url\(", TEXT.replace(name, ""))
    assert "style=" not in TEXT and not re.findall(r"\son\w+=", TEXT.replace(SCRIPT, ""))
    for dangerous in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval("):
        assert dangerous not in SCRIPT


def colours(scheme: str) -> dict[str, str]:
    light, dark = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    return dict(re.findall(r"--([\w-]+): (#\w{6});", light if scheme == "light" else dark))


def test_the_measure_itself() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(scheme: str) -> None:
    """AA: 4.5 for text, 3 for the edge of a field and for a mark."""
    colour = colours(scheme)
    texts = [("ink", "paper"), ("ink", "sheet"), ("quiet", "paper"), ("quiet", "sheet")]
    texts += [("on-accent", "accent"), ("on-mark", "mark"), ("error", "error-back")]
    texts += [
        ("ink", "doubtful-back"),
        ("unsure", "sheet"),
        ("accent", "sheet"),
        ("error", "sheet"),
    ]
    marks = [("field", "paper"), ("field", "sheet"), ("accent", "mark"), ("accent", "paper")]
    marks += [("doubtful", "doubtful-back"), ("unsure", "paper")]
    for pairs, least in ((texts, 4.5), (marks, 3.0)):
        for front, back in pairs:
            assert contrast(colour[front], colour[back]) >= least, (front, back)
