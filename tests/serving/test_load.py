"""Many clients at once with a real model: each gets the answer to its own question."""

from concurrent.futures import ThreadPoolExecutor
from math import exp
from pathlib import Path
from typing import Any

import pytest

from kakehashi.decoding.methods import Sampling
from kakehashi.inference.options import Options
from kakehashi.inference.request import Request
from kakehashi.inference.translator import Translator
from kakehashi.serving.backend import TranslatorBackend
from kakehashi.serving.limits import Limits
from kakehashi.serving.tasks import Attending, Scoring, Text, Translating


@pytest.fixture(scope="module")
def translator(model_folder: Path) -> Translator:
    return Translator.load(model_folder)


@pytest.fixture
def backend(translator: Translator) -> TranslatorBackend:
    return TranslatorBackend(translator, together=16, card="a card")


def test_nothing_is_lost_or_mixed_up(
    running: Any, translator: Translator, backend: TranslatorBackend, small_corpus: Any
) -> None:
    """100 requests of 8 clients: 132 distinct sentences, two kinds of options."""
    sentences = [f"{n} {line}" for n, line in enumerate(small_corpus.source)]
    asked = [(sentences[n : n + 1] + sentences[100 + n : 101 + n], 1 + n % 2) for n in range(100)]
    with running(backend, together=16, seconds=300) as served, ThreadPoolExecutor(8) as pool:
        replies = [
            pool.submit(served.ask, "/translate", {"texts": texts, "beam": beam})
            for texts, beam in asked
        ]
        answers = [reply.result().json["translations"] for reply in replies]
        text = served.ask("/metrics").content.decode()
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(lines["kakehashi_batch_sentences_sum"]) == len(sentences) == 132
    assert float(lines["kakehashi_batch_sentences_count"]) < 100  # requests did share batches
    for beam in (1, 2):
        texts = [text for texts, one in asked if one == beam for text in texts]
        got = [
            found
            for answer, (_, one) in zip(answers, asked, strict=True)
            if one == beam
            for found in answer
        ]
        expected = translator.translate(texts, Options(beam=beam))
        assert [one["text"] for one in got] == [one.text for one in expected]
        scores = [one.score for one in expected]
        assert [one["score"] for one in got] == pytest.approx(scores, abs=1e-4)
        for text, one in list(zip(texts, got, strict=True))[::30]:
            assert translator.translate([text], Options(beam=beam))[0].text == one["text"]


def test_details_scores_and_alignments_agree_with_the_translator(
    running: Any, translator: Translator, backend: TranslatorBackend
) -> None:
    texts = ["Der Hund schläft.", "", "Die Katze trinkt Milch. " * 9]
    with running(backend) as served:
        question = {"texts": texts, "n_best": 2, "details": True}
        answer = served.ask("/translate", question).json["translations"]
        pairs = [{"source": texts[0], "target": "The dog sleeps."}]
        (score,) = served.ask("/score", {"pairs": pairs}).json["scores"]
        (aligned,) = served.ask("/align", {"pairs": pairs}).json["alignments"]
        odd = served.ask("/translate", {"texts": ["\ud800 x"], "details": True})
    alone = translator.translate(texts, Options(n_best=2, details=True))
    for one, expected in zip(answer, alone, strict=True):
        assert one["text"] == expected.text
        for got, candidate in zip(one["candidates"], expected.hypotheses, strict=True):
            assert got["log_probability"] == pytest.approx(candidate.log_probability, abs=1e-4)
            chances = 1.0
            for word in got["words"]:
                chances *= word["probability"]
                assert all(0 <= n < len(one["source_words"]) for n in word["source"])
            # the words' probabilities are those of all pieces but the ends
            assert chances >= exp(candidate.log_probability) * (1 - 1e-3)
    assert answer[0]["source_words"] == ["Der", "Hund", "schläft", "."]
    assert answer[1]["candidates"][0]["words"] == []
    (warning,) = answer[2]["warnings"]
    assert warning.startswith("the text has ") and "line" not in warning
    (expected,) = translator.score([(texts[0], "The dog sleeps.")])
    assert score["log_probability"] == pytest.approx(expected.log_probability, abs=1e-4)
    assert aligned["source_words"] == ["Der", "Hund", "schläft", "."]
    assert aligned["target_words"] == ["The", "dog", "sleeps", "."]
    assert {t for _, t in aligned["pairs"]} == {0, 1, 2, 3}
    assert odd.status == 200


def test_facts_of_a_model(backend: TranslatorBackend) -> None:
    limits = Limits(characters=77)
    facts = backend.facts(limits)
    assert (facts.source_language, facts.target_language) == ("de", "en")
    assert (facts.engine, facts.beam, facts.card) == ("torch", 3, "a card")
    assert facts.limits.characters == 77


def test_the_work_of_a_text(translator: Translator, backend: TranslatorBackend) -> None:
    line = "Der Hund schläft."
    pieces = len(translator.tokenizer.encode(line)) + 1

    def work(text: Text, **given: Any) -> float:
        return backend.work(Translating(Options(**given)), [text])[0] / pieces

    assert work(Request(line)) == 3  # the model's own beam
    assert work(Request(line), beam=8, n_best=2) == 8
    assert work(Request(line), beam=4, n_best=2, details=True) == 6
    assert work(Request(line), method=Sampling(), n_best=2) == 2
    assert backend.work(Attending(None), [Request(line)]) == [2 * 3 * pieces]
    assert backend.work(Attending(5), [Request(line)]) == [2 * 5 * pieces]
    long = Request("🐶" * 100)
    assert backend.work(Translating(Options(beam=1)), [long])[0] > 400  # bytes, not characters
    whole = Request("🐶" * 100, prefix="x")
    assert backend.work(Translating(Options(beam=1)), [whole])[0] > 400 * 400 / 53
    assert backend.work(Scoring(), [("🐶" * 100, "x")])[0] > 400 * 400 / 53
