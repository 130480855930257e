"""Phrases in the pieces that they have after a space, and right after a word."""

from pathlib import Path
from typing import Any

import pytest

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.errors import ConfigError
from kakehashi.inference.options import Options
from kakehashi.inference.phrases import holds, joined, required_phrase, spellings
from kakehashi.inference.request import Request
from kakehashi.inference.translator import Translator


@pytest.mark.parametrize("text", [".", "!", "Hund", "Hund schläft.", "{a}", "猫"])
def test_joined_pieces_go_on_without_a_space(tokenizer: Tokenizer, text: str) -> None:
    head = tokenizer.encode("Kind")
    assert tokenizer.decode([*head, *joined(tokenizer, text)]) == "Kind" + text
    spaced, *others = spellings(tokenizer, text)
    assert tokenizer.decode([*head, *spaced]) in ("Kind " + text, "Kind" + text)
    assert [tokenizer.decode([*head, *other]) for other in others] in ([], ["Kind" + text])


def test_required_marks_join_the_word_before_them(tokenizer: Tokenizer) -> None:
    head = tokenizer.encode("Kind")
    for text, expected in (("!", "Kind!"), (".", "Kind."), ("Hund", "Kind Hund")):
        assert tokenizer.decode([*head, *required_phrase(tokenizer, text)]) == expected


@pytest.mark.parametrize(
    ("text", "phrase", "expected"),
    [
        ("the art.", "art", True),
        ("start arts", "art", False),
        ("starting art", " art ", True),
        ("you.", ".", True),
        ("猫が座る", "猫", True),
        ("New York", "New York", True),
        ("", "a", False),
    ],
)
def test_what_a_text_holds(text: str, phrase: str, expected: bool) -> None:
    assert holds(text, phrase) is expected


def test_a_forbidden_mark_is_in_no_translation(saved: dict[str, Path], kind: str) -> None:
    """Whatever a random model says most: its marks, one by one, in both spellings."""
    translator = Translator.load(saved[kind])
    line = "Der Hund schläft."
    forbidden: list[str] = []
    for _ in range(6):
        request = Request(line, forbidden=tuple(forbidden))
        (found,) = translator.translate([request], Options(beam=2, n_best=2))
        told = [w for w in found.warnings if "forbidden" in w]
        for phrase in forbidden:
            said = any(holds(h.text, phrase) for h in found.hypotheses)
            assert said == any(repr(phrase) in w for w in told)
        letters = found.text.replace(" ", "")
        assert not any(len(f) == 1 and f in letters for f in forbidden if not f.isalnum())
        forbidden.append(next((c for c in letters if c not in forbidden), letters[:1]))


def test_what_is_required_and_forbidden_at_once(tokenizer: Tokenizer) -> None:
    for required, forbidden in ((["Hund."], ["."]), (["der Hund"], ["Hund"]), (["!"], ["!"])):
        with pytest.raises(ConfigError, match="in it forbidden"):
            Request("a", required=required, forbidden=forbidden).rules(tokenizer)


def test_both_spellings_are_barred(tokenizer: Tokenizer, small_corpus: Any) -> None:
    rules = Request("a", forbidden=(".",)).rules(tokenizer)
    assert tuple(tokenizer.encode("Hund."))[-1:] in rules.forbidden
    assert tuple(tokenizer.encode(".")) in rules.forbidden
