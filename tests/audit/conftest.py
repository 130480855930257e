"""Texts to audit."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from kakehashi.audit import Text

MakeText = Callable[..., Text]


@pytest.fixture(scope="session")
def text() -> MakeText:
    """A text of two lists of sentences, by default German and English."""

    def make(
        source: Sequence[str], target: Sequence[str], source_language: str = "de", **other: Any
    ) -> Text:
        lines = range(1, max(len(source), len(target)) + 1)
        codes = {"target_language": "en"} | other
        return Text(source, target, lines, "test", source_language, **codes)

    return make


@pytest.fixture(scope="session")
def small(small_corpus: Any, text: MakeText) -> Text:
    """The German-English pairs written for the tests."""
    return text(small_corpus.source, small_corpus.target)
