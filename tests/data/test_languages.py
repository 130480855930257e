import sys

import pytest

from kakehashi.data.config import DataConfig, FilterConfig
from kakehashi.data.filters import filter_pairs
from kakehashi.data.languages import installed, other_language
from kakehashi.data.ledger import Ledger
from kakehashi.data.pairs import Pairs
from kakehashi.errors import ConfigError

LONG = "Am Abend saßen wir lange auf der Mauer und sahen den Booten zu, die in den Hafen fuhren."
FRENCH = "Le soir nous sommes restés longtemps sur le mur à regarder les bateaux rentrer au port."
JAPANESE = "夕方になると、私たちは長いあいだ塀の上に座って、港に入る船を眺めていました。"

library = pytest.mark.skipif(not installed(), reason="needs py3langid, of the extra `check`")


@library
def test_a_sentence_in_another_language_is_told() -> None:
    german, japanese = other_language("de-AT"), other_language("ja")
    assert [german(text) for text in (LONG, FRENCH, JAPANESE)] == [False, True, True]
    assert [japanese(text) for text in (LONG, FRENCH, JAPANESE)] == [True, True, False]


@library
def test_short_sentences_and_numbers_are_not_judged() -> None:
    for text in ("Paris", "Oui, merci.", "", "12 + 30 = 42; 7 * 6 = 42", "猫です。"):
        assert not other_language("de")(text)


@library
def test_few_sentences_of_a_real_corpus_are_taken_for_another_language(small_corpus) -> None:
    pairs = Pairs(small_corpus.source, small_corpus.target)
    filters = FilterConfig(language=True)
    kept = filter_pairs(pairs, DataConfig(filters=filters), "train", Ledger())
    assert len(kept) >= 0.97 * len(pairs)
    exchanged = filter_pairs(pairs.swapped(), DataConfig(filters=filters), "train", Ledger())
    assert len(exchanged) < 0.5 * len(pairs)


@library
def test_the_ledger_says_which_side() -> None:
    ledger = Ledger()
    pairs = Pairs([LONG, FRENCH, LONG], [FRENCH, LONG, JAPANESE], "a.tsv")
    config = DataConfig(target_language="fr", filters=FilterConfig(language=True))
    assert list(filter_pairs(pairs, config, "train", ledger).lines) == [1]
    entries = [(e.line, e.side, e.reason) for e in ledger]
    assert entries == [(2, "both", "in another language"), (3, "target", "in another language")]


@library
def test_a_language_that_the_library_does_not_know() -> None:
    with pytest.raises(ConfigError, match="does not know the language 'tlh'"):
        other_language("tlh")


def test_without_the_library_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py3langid", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'kakehashi\[check\]'"):
        other_language("de")
