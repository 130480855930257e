"""The model card says what it was told, and nothing in it is taken for markup."""

import dataclasses

import pytest

from kakehashi.decoding.config import DecodingConfig
from kakehashi.evaluation import Score, Scores
from kakehashi.inference.card import CardFacts, code_span, model_card
from kakehashi.models.config import RNNConfig, model_settings


@pytest.fixture
def facts() -> CardFacts:
    return CardFacts(
        source_language="no",
        target_language="en",
        model=model_settings(RNNConfig(d_embedding=13, d_maxout=13)),
        vocab_size=4013,
        parameters=1234567,
        corpus="Fjord sentences",
        licence="CC BY 2.0 FR",
        attribution="By the people of the fjord.",
        train_pairs=36524,
        valid_pairs=997,
        test_pairs=1009,
        max_length=128,
        decoding=DecodingConfig(beam=7, length_penalty=0.6),
        scores=Scores(
            Score("BLEU", 28.314, "nrefs:1|tok:13a", 26.9, 29.7),
            Score("chrF", 47.1, "nrefs:1|nc:6"),
            ("characters were counted",),
        ),
        training={"updates": "5,003", "command": "`a|b seed=3`"},
        version="9.8.7",
        measured=["3 of 1,009 translations are empty."],
        provenance={"/home/someone/fjord.no": "sha256 12ab", "more/hav.no": "sha256 34cd"},
        sha256={"train": "56ef"},
        pairs_read=38651,
        ledger=[("train", "blank side", "left out", 1234), ("test", "a|b", "kept", 1)],
        samples=[("Hunden | sover *nå*", "The <b>dog</b> sleeps", "It costs $5_$")],
    )


def test_holds_the_facts(facts: CardFacts) -> None:
    card = model_card(facts)
    for expected in (
        "1,234,567 parameters",
        "Fjord sentences: 36,524 pairs for training, 997 for validation, 1,009 for the test",
        "CC BY 2.0 FR",
        "By the people of the fjord.",
        "Of 38,651 pairs read:",
        "| train | blank side | left out | 1,234 |",
        "| test | a\\|b | kept | 1 |",
        "with Kakehashi 9.8.7.",
        "On 1,009 test pairs that share no sentence with the training pairs, beam 7",
        "Measured on the test split:\n\n- 3 of 1,009 translations are empty.",
        "| fjord.no | sha256 12ab |",
        "| more/hav.no | sha256 34cd |",
        "| sentences of train | sha256 56ef |",
        "| BLEU | 28.31 | 26.90 to 29.70 | `nrefs:1\\|tok:13a` |",
        "| chrF | 47.10 | not computed | `nrefs:1\\|nc:6` |",
        "beam 7, length penalty 0.6",
        "Note: characters were counted.",
        "| updates | 5,003 |",
        "128 pieces",
        "| command | `a\\|b seed=3` |",
        "d_hidden",
        "kakehashi translate",
        "Translator.load",
    ):
        assert expected in card, expected
    assert card.endswith("\n")
    assert "/home" not in card


def test_a_test_set_of_the_users_own_is_not_said_to_be_apart(facts: CardFacts) -> None:
    card = model_card(dataclasses.replace(facts, apart=False))
    assert "On 1,009 test pairs, beam 7" in card


def test_the_front_matter_is_yaml_with_the_languages_as_text(facts: CardFacts) -> None:
    import yaml

    front = model_card(facts).split("---\n")[1]
    parsed = yaml.safe_load(front)
    assert parsed["language"] == ["no", "en"]
    assert parsed["pipeline_tag"] == "translation"


def test_sentences_cannot_become_markup(facts: CardFacts) -> None:
    row = model_card(facts).splitlines()[-1]
    assert row == (
        "| Hunden \\| sover \\*nå\\* | The \\<b\\>dog\\</b\\> sleeps | It costs \\$5\\_\\$ |"
    )


def test_a_line_feed_ends_no_row_and_a_name_is_no_markup(facts: CardFacts) -> None:
    odd = dataclasses.replace(
        facts, corpus="my_*data*", samples=[("one\ntwo\u2028three", "a\r\nb", "")]
    )
    card = model_card(odd)
    assert card.splitlines()[-1] == "| one two three | a b |  |"
    assert "my\\_\\*data\\*: 36,524 pairs" in card


def test_code_keeps_its_backquotes() -> None:
    assert code_span("a 'b'") == "`a 'b'`"
    assert code_span("a `b` ``") == "``` a `b` `` ```"


def test_no_test_split_and_no_samples_are_said_or_left_out(facts: CardFacts) -> None:
    card = model_card(dataclasses.replace(facts, scores=None, samples=(), ledger=()))
    assert "without a test split" in card
    assert "BLEU" not in card
    assert "Translations of test sentences" not in card
    assert "pairs read" not in card
