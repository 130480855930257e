"""N lines in, N lines out, in order, whatever they hold, and each as if it were alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kakehashi.errors import ConfigError
from kakehashi.inference import Translation, Translator
from kakehashi.symbols import BOS, EOS, PAD, UNK

ODD = [
    "Der Hund schläft.",
    "",
    "\u200b",
    " \t\u3000",
    "ein\u2028Haus\u0085und\x0cnoch\reins",
    "der </s> <pad> Hund",
    "<s> <unk>",
    "👨\u200d👩\u200d👧 \U0001f436",
    "https://example.org/?a=1&b=2#c",
    "\u2581 \u2581\u2581",
    "\ufeffAnfang",
    "猫が座る。",
    "x" * 90,
    "42",
]


@pytest.fixture
def translator(kind: str, saved: dict[str, Path]) -> Translator:
    return Translator.load(saved[kind])


def same(left: Translation, right: Translation) -> bool:
    return (
        [text for text, _ in left.hypotheses] == [text for text, _ in right.hypotheses]
        and [score for _, score in left.hypotheses]
        == pytest.approx([score for _, score in right.hypotheses], abs=1e-4)
        and left.text == right.text
    )


def test_every_line_is_translated_as_if_it_were_alone(translator: Translator) -> None:
    alone = [translator.translate([line], n_best=2)[0] for line in ODD]
    for batch_size in (1, 2, 16):
        together = translator.translate(ODD, n_best=2, batch_size=batch_size)
        assert len(together) == len(ODD)
        assert all(same(a, b) for a, b in zip(alone, together, strict=True))
    backwards = translator.translate(ODD[::-1], n_best=2)
    assert all(same(a, b) for a, b in zip(alone, reversed(backwards), strict=True))
    assert len({translation.text for translation in alone}) > 4


def test_the_same_lines_twice_give_the_same_bits(translator: Translator) -> None:
    assert translator.translate(ODD) == translator.translate(ODD)


def test_lines_without_visible_characters_come_out_blank(translator: Translator) -> None:
    for blank in ODD[1:4]:
        assert translator.translate([blank]) == [Translation("", 0.0, (("", 0.0),))]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)
@given(lines=st.lists(st.text(max_size=12), max_size=5))
def test_a_translation_is_one_printable_line(translator: Translator, lines: list[str]) -> None:
    found = translator.translate(lines, beam=1)
    assert len(found) == len(lines)
    for translation in found:
        assert len(translation.text.splitlines()) <= 1
        assert "\u2581" not in translation.text
        assert not any(c < " " and c != "\t" for c in translation.text)
        translation.text.encode("utf-8")


def test_what_a_model_writes_is_made_one_line(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = "a\nb\u2028c\r\nd\x0ce\u2581f\x00g\th"
    monkeypatch.setattr(translator.tokenizer, "decode", lambda ids: written)
    assert translator.translate(["x"])[0].text == "a b c d e fg\th"


def test_decoding_leaves_no_reserved_pieces(translator: Translator) -> None:
    rows = translator.tokenizer.encode_batch(ODD)
    assert not {PAD, UNK, BOS, EOS} & {piece for row in rows for piece in row}
    for piece in (PAD, BOS, EOS):
        assert translator.tokenizer.decode([piece, *rows[0], piece]) == ODD[0]


def test_n_best_lists_are_ranked_and_begin_with_the_translation(translator: Translator) -> None:
    for translation in translator.translate(ODD[:1], n_best=3):
        assert translation.hypotheses[0] == (translation.text, translation.score)
        scores = [score for _, score in translation.hypotheses]
        assert scores == sorted(scores, reverse=True)
    with pytest.raises(ConfigError, match="n-best list of 4"):
        translator.translate(ODD, n_best=4)
    with pytest.raises(ConfigError, match="n-best list of 3"):
        translator.translate(ODD, n_best=3, beam=2)


def test_settings_out_of_range_are_refused_before_the_first_line(translator: Translator) -> None:
    for given_setting in ({"beam": 0}, {"batch_size": 0}, {"length_penalty": -1.0}):
        with pytest.raises(ConfigError, match=next(iter(given_setting))):
            translator.stream([], **given_setting)


def test_a_single_text_is_not_taken_for_a_list(translator: Translator) -> None:
    with pytest.raises(TypeError, match="list of lines"):
        translator.translate("Der Hund schläft.")


def test_streaming_asks_for_a_window_at_a_time(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0

    def lines() -> Iterator[str]:
        nonlocal asked
        for number in range(11):
            asked += 1
            yield f"Hund {number}"

    monkeypatch.setattr("kakehashi.inference.translator.WINDOW", 3)
    stream = translator.stream(lines(), batch_size=2, beam=1)
    next(stream)
    assert asked == 6
    assert len(list(stream)) == 10
    asked = 0
    single = translator.stream(lines(), batch_size=1, beam=1)
    next(single)
    next(single)
    assert asked == 2


def test_a_line_longer_than_the_training_gets_a_warning_and_is_translated_whole(
    translator: Translator,
) -> None:
    long = "hund " * 60
    pieces = len(translator.tokenizer.encode(long)) + 1
    found = translator.translate(["hund", long, "hund"], beam=1)
    assert not any("pieces, the model" in w for t in (found[0], found[2]) for w in t.warnings)
    assert (
        f"line 2 has {pieces:,} pieces, the model was trained on at most 53"
        in (found[1].warnings[0])
    )
    assert not same(found[1], translator.translate(["hund " * 50], beam=1)[0])


def test_a_translation_that_does_not_end_is_said_to_be_cut(
    translator: Translator, tokenizer: Any
) -> None:
    found = translator.translate(ODD, beam=1)
    cut = [t for t in found if any("cut after" in w for w in t.warnings)]
    assert cut
    for translation in cut:
        assert translation.text


def test_score_of_a_translation_by_hand(translator: Translator) -> None:
    import torch

    pieces, scores = translator.score_tokens("Der Hund", "The dog")
    ids = translator.tokenizer.encode("The dog")
    source = torch.tensor([[*translator.tokenizer.encode("Der Hund"), EOS]])
    logits = translator.model(source, source >= 0, torch.tensor([[BOS, *ids]]))
    expected = [
        float(row.double().log_softmax(-1)[piece])
        for row, piece in zip(logits[0], [*ids, EOS], strict=True)
    ]
    assert list(scores) == pytest.approx(expected, abs=1e-5)
    assert len(pieces) == len(scores)


def test_attention_has_a_label_for_every_row_and_column(translator: Translator) -> None:
    view = translator.attention("Der Hund schläft.", "The dog sleeps.")
    assert view.source[-1] == "</s>"
    assert view.target_input[0] == "<s>"
    assert view.target_output[-1] == "</s>"
    assert view.target_input[1:] == view.target_output[:-1]
    for weights in view.maps.cross:
        assert weights.shape[2:] == (len(view.target_output), len(view.source))
        assert weights.sum(-1).numpy() == pytest.approx(1.0, abs=1e-5)


def test_attention_follows_the_models_own_translation(translator: Translator) -> None:
    line = "Der Hund schläft."
    tokenizer = translator.tokenizer
    number = {piece: i for i, piece in enumerate(tokenizer.pieces(range(tokenizer.vocab_size)))}
    written = [number[piece] for piece in translator.attention(line).target_output]
    assert written[-1] == EOS
    decoded = tokenizer.decode(written)
    assert " ".join(decoded.splitlines()) == translator.translate([line])[0].text
