"""Scripts and languages of the sides, wrong encodings, and what is said without the libraries."""

from typing import Any

import pytest

from kakehashi.audit import Text, audit, languages, mojibake
from kakehashi.audit.languages import wrong_script


def test_a_line_in_another_script_is_found(text: Any) -> None:
    made = text(["猫が座る。", "The cat sits.", "12!", "カフェ ABC"], ["a", "b", "猫", "д"], "ja")
    found = list(wrong_script(made))
    assert [(f.code, f.side, f.count) for f in found] == [
        ("language.script", "source", 1),
        ("language.script", "target", 2),
    ]
    assert [f.lines for f in found] == [(2,), (3, 4)]
    assert [f.severity for f in found] == ["warning", "warning"]
    (finding,) = wrong_script(text(["Привет", "мир"], ["a", "b"]))
    assert finding.severity == "error"
    assert list(wrong_script(text(["Привет"], ["猫"], "", target_language="qqq"))) == []


@pytest.fixture
def long_text(small: Text, text: Any) -> Text:
    """Four sentences a line: long enough to be sure of their language."""
    joined = [
        [" ".join(side[i : i + 4]) for i in range(0, 120, 4)]
        for side in (small.source, small.target)
    ]
    made: Text = text(*joined)
    return made


def test_lines_in_the_right_language_are_not_remarked_on(long_text: Text) -> None:
    assert list(languages.languages(long_text)) == []


def test_a_line_in_another_language_is_found(long_text: Text) -> None:
    target = list(long_text.target)
    target[7] = long_text.source[7]
    (finding,) = languages.languages(
        Text(long_text.source, target, long_text.lines, "", "de", "en")
    )
    assert (finding.code, finding.side, finding.lines) == ("language.identified", "target", (8,))
    assert finding.examples[0].detail == "looks like de"
    # Without a code the side's own majority counts.
    (finding,) = languages.languages(Text(long_text.source, target, long_text.lines))
    assert finding.lines == (8,)


def test_exchanged_sides_are_an_error(long_text: Text, text: Any) -> None:
    found = list(languages.languages(text(long_text.target, long_text.source)))
    assert [(f.code, f.side, f.severity) for f in found] == [
        ("language.side", "source", "error"),
        ("language.side", "target", "error"),
    ]
    assert "said to be de, and most of it looks like en" in found[0].title


def test_long_sides_are_sampled_evenly(long_text: Text, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(languages, "IDENTIFIED", 10)
    target = list(long_text.target)
    target[3] = target[4] = long_text.source[3]
    (finding,) = languages.languages(
        Text(long_text.source, target, long_text.lines, "", "de", "en")
    )
    assert (finding.lines, finding.of) == ((4,), 10)
    assert "one line in 3" in finding.title


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("Das ist schÃ¶n und grÃ¼n.", "Das ist schön und grün."),
        ("Itâ€™s a long way.", "It’s a long way."),
        ("ÐŸÑ€Ð¸Ð²ÐµÑ‚, Ð¼Ð¸Ñ€", "Привет, мир"),
    ],
)
def test_wrong_encodings_are_found_with_what_was_meant(text: Any, line: str, meant: str) -> None:
    (finding,) = mojibake.mojibake(text(["Schöne Grüße – über 5 € „heute“", line], ["ok", "ok"]))
    assert (finding.code, finding.lines) == ("characters.mojibake", (2,))
    assert finding.examples[0].detail == f"meant: {meant}"


def test_without_the_libraries_the_rest_works_and_says_so(
    small: Text, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    said = audit({"train": small}).skipped
    assert len(said) == 2
    assert all("pip install 'kakehashi[check]'" in line for line in said)
    assert [
        line for line in audit({"train": small}, identify=False).skipped if "lang" in line
    ] == []
