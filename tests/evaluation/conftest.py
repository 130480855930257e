"""Translations of the small corpus by two systems that make their own mistakes."""

from typing import Any

import pytest


def _worse(sentence: str, every: int) -> str:
    """Each so-manieth word gone, and the last two the other way round."""
    words = [word for i, word in enumerate(sentence.split(), 1) if i % every]
    return " ".join([*words[:-2], *reversed(words[-2:])])


@pytest.fixture(scope="session")
def systems(small_corpus: Any) -> tuple[list[str], list[str]]:
    """The second is the worse one, but not in every sentence."""
    good = [_worse(s, 5) if i % 3 else s for i, s in enumerate(small_corpus.target)]
    bad = [_worse(s, 4) if i % 4 else s for i, s in enumerate(small_corpus.target)]
    return good, bad
