"""The analysis of a translated test set, against sacreBLEU, brute force and values by hand."""

import random

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from kakehashi.evaluation.analysis import SHOWN, analyse
from kakehashi.evaluation.flaws import LONGEST_LOOP, Flaw, Sentence, flaws, loop
from kakehashi.evaluation.lengths import by_length
from kakehashi.evaluation.metrics import Metric
from kakehashi.evaluation.ngrams import by_frequency, frequencies, ngrams
from kakehashi.evaluation.words import words_of

WORDS = ["the", "a", "dog", "cat", "sees", "house", "small", "red", "runs", "here", ",", "."]


@pytest.fixture(scope="module")
def texts() -> tuple[list[str], list[str], list[str]]:
    """Source, translation and reference of 60 sentences of 1 to 70 words."""
    draw = random.Random(5)
    references = [" ".join(draw.choices(WORDS, k=draw.randint(1, 30))) for _ in range(60)]
    translations = [
        " ".join(draw.choice(WORDS) if draw.random() < 0.3 else word for word in line.split())
        for line in references
    ]
    translations[7] = references[7]
    sources = [" ".join("wort" for _ in range(draw.randint(1, 70))) for _ in references]
    return sources, translations, references


def test_the_groups_of_lengths_have_the_scores_of_their_sentences(texts):
    _, translations, references = texts
    lengths = [1 + i for i in range(60)]
    tables = [
        (metric, metric.statistics(translations, references))
        for metric in (Metric("bleu"), Metric("chrf"))
    ]
    groups = by_length(lengths, *tables)
    assert [(g.shortest, g.longest) for g in groups] == [
        (0, 5), (6, 10), (11, 15), (16, 20), (21, 30), (31, 40), (41, 60),
    ]  # fmt: skip
    assert sum(group.sentences for group in groups) == 60
    for group in groups:
        rows = [i for i, n in enumerate(lengths) if group.shortest <= n <= (group.longest or n)]
        ours, theirs = [translations[i] for i in rows], [references[i] for i in rows]
        expected = sacrebleu.corpus_bleu(ours, [theirs], force=True)
        assert group.sentences == len(rows)
        assert group.bleu == pytest.approx(expected.score, abs=1e-9)
        assert group.ratio == pytest.approx(expected.ratio, abs=1e-12)
        assert group.chrf == pytest.approx(sacrebleu.corpus_chrf(ours, [theirs]).score, abs=1e-9)
    assert by_length([61] * 60, *tables)[0].longest is None


def test_the_parts_of_bleu_are_sacrebleus(texts):
    _, translations, references = texts
    short = [line.split(" ", 1)[-1] for line in translations]
    for said in (translations, short):
        parts = ngrams(Metric("bleu").statistics(said, references).sum(0))
        expected = sacrebleu.corpus_bleu(said, [references], force=True)
        assert list(parts.matched) == expected.counts
        assert list(parts.said) == expected.totals
        assert parts.brevity_penalty == pytest.approx(expected.bp, abs=1e-12)
        assert parts.ratio == pytest.approx(expected.ratio, abs=1e-12)
    assert ngrams(Metric("bleu").statistics([""], ["a b"]).sum(0)).brevity_penalty == 0


def test_words_by_their_frequency_in_training():
    training = ["der hund sah den hund", "hund , hund", *["und"] * 21]
    seen = frequencies(training, str.split, ["hund", "und", "katze", "sah"])
    assert seen == {"hund": 4, "und": 21, "sah": 1}
    translations = [["hund", "hund", "und"], ["katze"]]
    references = [["hund", "und", "und", "katze"], ["katze", "sah"]]
    groups = by_frequency(translations, references, seen)
    assert [(g.fewest, g.most, g.wanted, g.said, g.right) for g in groups] == [
        (0, 0, 2, 1, 1),  # katze: in another sentence it is not right
        (1, 5, 2, 2, 1),  # hund, sah
        (6, 20, 0, 0, 0),
        (21, 100, 2, 1, 1),  # und
        (101, 1000, 0, 0, 0),
        (1001, None, 0, 0, 0),
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", None),
        ("a b c", None),
        ("no no", None),
        ("no no no", (1, 3)),
        ("in the room in the room .", (3, 2)),
        ("say so so , say so so ,", (4, 2)),
        ("! ! ! !", None),
        ("a b a b a b c c c", (2, 3)),
    ],
)
def test_loops(line, expected):
    assert loop(line.split()) == expected


@given(st.lists(st.sampled_from("abc"), max_size=24))
def test_loops_are_what_brute_force_finds(words):
    most = 1
    for unit in range(1, LONGEST_LOOP + 1):
        for start in range(len(words)):
            times = 1
            while words[start : start + unit] == words[start + unit * times :][:unit]:
                times += 1
            if len(words[start : start + unit]) == unit:
                most = max(most, unit * (times - 1))
    found = loop(words)
    assert (0 if found is None else found[0] * (found[1] - 1)) == (most if most > 1 else 0)


def found(source: str, translation: str, reference: str, language: str = "en") -> set[str]:
    words = words_of(language)
    sentence = Sentence(
        1, source, translation, reference, tuple(words(translation)), tuple(words(reference))
    )
    return {flaw.name for flaw in flaws([sentence], words) if flaw.translations}


@pytest.mark.parametrize(
    ("source", "translation", "reference", "expected"),
    [
        ("Der Hund schläft.", "The dog sleeps.", "The dog is asleep.", set()),
        ("Der Hund schläft.", " ", "The dog sleeps.", {"empty", "too short"}),
        ("Der Hund schläft.", "der Hund schläft", "The dog sleeps.", {"copy of the source"}),
        ("Tom!", "Tom!", "Tom!", set()),
        ("?", "?", "What?", set()),
        ("Mein Freund Karl wartet.", "My Freund Karl wartet.", "My friend Karl waits.",
         {"partly untranslated"}),
        ("Karl wartet.", "Karl waits for us.", "Karl waits.", set()),
        ("Der Hund schläft.", "The dog the dog sleeps.", "The dog sleeps.", {"repeats itself"}),
        ("Der Hund schläft.", "The doggggg sleeps.", "The dog sleeps.", {"repeats itself"}),
        ("Es kostet 100000.", "It costs 100000.", "It costs 100000.", set()),
        ("Der Hund schläft hier.", "Here.", "The dog sleeps here.", {"too short"}),
        ("Er geht.", "He goes to the house and sees a dog.", "He goes now.", {"too long"}),
        ("Ja.", "Yes, of course he does.", "Yes.", set()),
    ],
)  # fmt: skip
def test_flaws(source, translation, reference, expected):
    assert found(source, translation, reference) == expected


def test_flaws_count_the_references_too():
    words = words_of("en")
    sentences = [
        Sentence(n, "x", "a b", line, ("a", "b"), tuple(words(line)))
        for n, line in enumerate(["no no no", "yes", ""], 1)
    ]
    table = {flaw.name: flaw for flaw in flaws(sentences, words)}
    assert table["repeats itself"].references == 1
    assert table["empty"].references == 1
    assert table["too long"] == Flaw("too long", table["too long"].means, 0, None, ())


def test_the_worst_and_the_best_are_those_of_sacrebleu(texts):
    analysis = analyse(*texts, texts[2], ("de", "en"))
    scores = [
        sacrebleu.sentence_chrf(ours, [theirs]).score
        for ours, theirs in zip(*texts[1:], strict=True)
    ]
    ranked = sorted(scores)
    assert [one.chrf for one in analysis.worst] == pytest.approx(ranked[:SHOWN])
    assert [one.chrf for one in analysis.best] == pytest.approx(ranked[::-1][:SHOWN])
    for one in (*analysis.worst, *analysis.best):
        assert (one.source, one.translation, one.reference) == tuple(
            side[one.line - 1] for side in texts
        )
        assert one.chrf == pytest.approx(scores[one.line - 1])
    assert analysis.exact == sum(a == b for a, b in zip(*texts[1:], strict=True))
    assert set(analysis.examples) == {line for flaw in analysis.flaws for line in flaw.lines}
    plain = analysis.as_dict()
    assert sum(group["wanted"] for group in plain["frequencies"]) == sum(
        len(line.split()) for line in texts[2]
    )
    assert all(isinstance(line, str) for line in plain["examples"])
