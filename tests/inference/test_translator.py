"""N lines in, N lines out, in order, whatever they hold, and each as if it were alone."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kakehashi.decoding.methods import DiverseBeam, Sampling
from kakehashi.errors import BundleError, ConfigError
from kakehashi.inference.bundle import load_bundle
from kakehashi.inference.options import MinimumRisk, Options
from kakehashi.inference.request import Request
from kakehashi.inference.translation import BLANK, Translation
from kakehashi.inference.translator import Translator
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
        [h.text for h in left.hypotheses] == [h.text for h in right.hypotheses]
        and [h.score for h in left.hypotheses]
        == pytest.approx([h.score for h in right.hypotheses], abs=1e-4)
        and left.text == right.text
    )


def test_every_line_is_translated_as_if_it_were_alone(translator: Translator) -> None:
    alone = [translator.translate([line], Options(n_best=2))[0] for line in ODD]
    for batch_size in (1, 2, 16):
        together = translator.translate(ODD, Options(n_best=2, batch_size=batch_size))
        assert len(together) == len(ODD)
        assert all(same(a, b) for a, b in zip(alone, together, strict=True))
    backwards = translator.translate(ODD[::-1], Options(n_best=2))
    assert all(same(a, b) for a, b in zip(alone, reversed(backwards), strict=True))
    assert len({translation.text for translation in alone}) > 4


def test_the_same_lines_twice_give_the_same_bits(translator: Translator) -> None:
    assert translator.translate(ODD) == translator.translate(ODD)


def test_lines_without_visible_characters_come_out_blank(translator: Translator) -> None:
    for blank in ODD[1:4]:
        assert translator.translate([blank]) == [BLANK]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)
@given(lines=st.lists(st.text(max_size=12), max_size=5))
def test_a_translation_is_one_printable_line(translator: Translator, lines: list[str]) -> None:
    found = translator.translate(lines, Options(beam=1))
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
    for translation in translator.translate(ODD[:1], Options(n_best=3)):
        assert (translation.hypotheses[0].text, translation.hypotheses[0].score) == (
            translation.text,
            translation.score,
        )
        scores = [h.score for h in translation.hypotheses]
        assert scores == sorted(scores, reverse=True)
    with pytest.raises(ConfigError, match="n-best list of 4"):
        translator.translate(ODD, Options(n_best=4))
    with pytest.raises(ConfigError, match="n-best list of 3"):
        translator.translate(ODD, Options(n_best=3, beam=2))


def test_settings_out_of_range_are_refused_before_the_first_line(translator: Translator) -> None:
    for given_setting in ({"beam": 0}, {"batch_size": 0}, {"length_penalty": -1.0}):
        with pytest.raises(ConfigError, match=next(iter(given_setting))):
            translator.stream([], Options(**given_setting))


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
    stream = translator.stream(lines(), Options(batch_size=2, beam=1))
    next(stream)
    assert asked == 6
    assert len(list(stream)) == 10
    asked = 0
    single = translator.stream(lines(), Options(batch_size=1, beam=1))
    next(single)
    next(single)
    assert asked == 2


def test_a_line_longer_than_the_training_gets_a_warning_and_is_translated_whole(
    translator: Translator,
) -> None:
    long = "hund " * 60
    pieces = len(translator.tokenizer.encode(long)) + 1
    found = translator.translate(["hund", long, "hund"], Options(beam=1))
    assert not any("pieces, the model" in w for t in (found[0], found[2]) for w in t.warnings)
    assert (
        f"line 2 has {pieces:,} pieces, the model was trained on at most 53"
        in (found[1].warnings[0])
    )
    assert not same(found[1], translator.translate(["hund " * 50], Options(beam=1))[0])


def test_a_translation_that_does_not_end_is_said_to_be_cut(
    translator: Translator, tokenizer: Any
) -> None:
    found = translator.translate(ODD, Options(beam=1))
    cut = [t for t in found if any("cut after" in w for w in t.warnings)]
    assert cut
    for translation in cut:
        assert translation.text


def test_score_of_a_translation_by_hand(translator: Translator) -> None:
    import torch

    (scored,) = translator.score([("Der Hund", "The dog")])
    ids = translator.tokenizer.encode("The dog")
    source = torch.tensor([[*translator.tokenizer.encode("Der Hund"), EOS]])
    logits = translator.engine.model(source, source >= 0, torch.tensor([[BOS, *ids]]))
    expected = [
        float(row.double().log_softmax(-1)[piece])
        for row, piece in zip(logits[0], [*ids, EOS], strict=True)
    ]
    assert list(scored.token_log_probabilities) == pytest.approx(expected, abs=1e-5)
    assert scored.log_probability == pytest.approx(sum(expected), abs=1e-5)
    assert len(scored.tokens) == len(expected)


def test_details_agree_with_the_search_and_with_forced_decoding(translator: Translator) -> None:
    options = Options(n_best=3, details=True, length_penalty=0.7)
    plain = translator.translate(ODD, Options(n_best=3, length_penalty=0.7))
    for line, told, without in zip(ODD, translator.translate(ODD, options), plain, strict=True):
        assert same(told, without)
        if not told.text:
            continue
        for best in told.hypotheses:
            total = sum(best.token_log_probabilities)
            assert best.log_probability == pytest.approx(total, abs=1e-4)
            if told.source_tokens.count("</s>") == 1:
                assert best.score == pytest.approx(total / len(best.tokens) ** 0.7, abs=1e-4)
            pieces = [at for at, token in enumerate(best.tokens) if token != "</s>"]
            assert [j for _, j in best.alignment] == pieces
            assert all(told.source_tokens[i] != "</s>" for i, _ in best.alignment)
        assert told.seconds > 0, line


def test_forced_decoding_does_not_depend_on_neighbours_and_takes_blank_sides(
    translator: Translator,
) -> None:
    pairs = [(line, other) for line, other in zip(ODD, ODD[::-1], strict=True)]
    together = list(translator.score(pairs, batch_size=4))
    for pair, scored in zip(pairs, together, strict=True):
        (alone,) = translator.score([pair])
        assert alone.tokens == scored.tokens
        assert scored.log_probability == pytest.approx(alone.log_probability, abs=1e-4)
        assert scored.perplexity >= 1.0
    (blank,) = translator.score([("Hund", "")])
    assert blank.tokens == ("</s>",)
    assert blank.alignment == ()


def test_every_option_reaches_the_search(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []
    search = translator.engine.search

    def listen(rows: Any, **given: Any) -> Any:
        asked.append(given)
        return search(rows, **given)

    monkeypatch.setattr(translator.engine, "search", listen)
    settings = {
        "beam": 4,
        "patience": 1.5,
        "length_penalty": 0.3,
        "coverage_penalty": 0.2,
        "min_ratio": 0.05,
        "max_ratio": 0.2,
        "no_repeat_ngram": 3,
        "repetition_penalty": 1.1,
        "batch_size": 7,
    }
    translator.translate(["Hund"], Options(**settings, method=DiverseBeam(2, 0.7), n_best=2))
    assert asked[-1]["config"] == replace(translator.config.decoding, **settings)
    assert (asked[-1]["method"], asked[-1]["n_best"]) == (DiverseBeam(2, 0.7), 2)
    sampling = Sampling(0.7, 9, 0.8, 3)
    drawn = translator.translate(["Hund"], Options(method=sampling, n_best=8))
    assert (asked[-1]["method"], asked[-1]["n_best"]) == (sampling, 8)
    assert len(drawn[0].hypotheses) == 8
    with pytest.raises(ConfigError, match="n-best list of 5 needs as many samples; they are 4"):
        translator.stream([], Options(method=MinimumRisk(4), n_best=5))


def test_the_sample_of_least_risk_is_the_most_like_the_others(translator: Translator) -> None:
    sampling = Sampling(temperature=1.3, seed=5)
    line = "Der Hund schläft."
    drawn = translator.translate([line], Options(method=sampling, n_best=7))[0].hypotheses
    (least,) = translator.translate([line], Options(method=MinimumRisk(7, sampling), n_best=3))
    texts = [candidate.text for candidate in drawn]
    means = [
        sum(sacrebleu.sentence_chrf(text, [other]).score for other in texts) / 7 for text in texts
    ]
    assert least.score == pytest.approx(max(means))
    assert least.text == texts[means.index(max(means))]
    assert len(least.hypotheses) == 3


def test_rules_are_words(translator: Translator) -> None:
    line = "Der Hund schläft."
    options = Options(max_ratio=3.0)
    request = Request(line, prefix="The cat", required=["house"], forbidden=["dog"])
    found, plain = translator.translate([request, line], options)
    assert found.text.startswith("The cat")
    assert "house" in found.text
    assert "dog" not in found.text
    assert same(plain, translator.translate([line], options)[0])


def test_an_ensemble_of_both_kinds_translates_and_scores(saved: dict[str, Path]) -> None:
    both = Translator.load([saved["transformer"], saved["rnn"]])
    lines = [line for line in ODD if line.strip() and len(line) < 60]
    found = both.translate(lines, Options(details=True))
    for line, translation in zip(lines, found, strict=True):
        (scored,) = both.score([(line, translation.text)])
        if scored.tokens == translation.hypotheses[0].tokens:
            expected = translation.hypotheses[0].log_probability
            assert scored.log_probability == pytest.approx(expected, abs=1e-4)
    alone = Translator.load(saved["rnn"])
    assert [t.text for t in found] != [t.text for t in alone.translate(lines)]
    twice = Translator.load([saved["rnn"], saved["rnn"]])
    assert all(
        same(a, b) for a, b in zip(twice.translate(lines), alone.translate(lines), strict=True)
    )


def test_models_that_do_not_share_a_tokenizer_are_no_ensemble(
    saved: dict[str, Path], save: Callable[..., Path], tmp_path: Path
) -> None:
    other = save(tmp_path / "other", target_language="fr")
    with pytest.raises(BundleError, match="de to en and model 2 de to fr"):
        Translator.load([saved["rnn"], other])
    bundles = [load_bundle(saved["rnn"]), load_bundle(saved["rnn"])]
    bundles[1] = replace(bundles[1], config=replace(bundles[1].config, tokenizer_sha256="9" * 64))
    with pytest.raises(BundleError, match="different tokenizers"):
        Translator.of(*bundles)


def test_translations_are_scored_by_their_own_pieces(translator: Translator) -> None:
    lines = [line for line in ODD if line.strip()]
    options = Options(n_best=2, details=True, max_ratio=2.0)
    pairs, wanted = [], []
    for line, told in zip(lines, translator.translate(lines, options), strict=True):
        if told.source_tokens.count("</s>") < 2:
            pairs += [(told.source_tokens, best.tokens) for best in told.hypotheses]
            wanted += [best.log_probability for best in told.hypotheses]
        assert len(line) > 0
    found = list(translator.score_tokens(pairs, batch_size=3))
    assert [scored.log_probability for scored in found] == pytest.approx(wanted, abs=1e-4)
    assert [scored.tokens for scored in found] == [tokens for _, tokens in pairs]


def test_parts_with_their_ends_are_scored_one_by_one(translator: Translator) -> None:
    sides = [("Der Hund", "the dog"), ("schläft", "sleeps"), ("", "")]
    alone = list(translator.score(sides[:2]))
    source = [piece for scored in alone for piece in scored.source_tokens]
    target = [piece for scored in alone for piece in scored.tokens]
    (together,) = translator.score_tokens([(source, target)])
    assert together.log_probability == pytest.approx(
        sum(scored.log_probability for scored in alone), abs=1e-4
    )
    offset = len(alone[0].source_tokens), len(alone[0].tokens)
    moved = [(i + offset[0], j + offset[1]) for i, j in alone[1].alignment]
    assert list(together.alignment) == [*alone[0].alignment, *moved]
    (cut,) = translator.score_tokens([(source, target[:-1])])
    assert cut.token_log_probabilities == together.token_log_probabilities[:-1]
    (nothing,) = translator.score_tokens([([], [])])
    assert (nothing.log_probability, nothing.perplexity) == (0, 1)


def test_words_of_translations_and_of_given_pairs_are_aligned_alike(
    translator: Translator,
) -> None:
    lines = ["Der Hund schläft.", "猫 \u2581 trinkt", "Hund " * 40 + "." + " Katze" * 30]
    for line, told in zip(
        lines, translator.translate(lines, Options(n_best=2, details=True)), strict=True
    ):
        whole = told.source_tokens.count("</s>") == 1
        for best in told.hypotheses:
            words = {j for _, j in best.word_alignment}
            assert words == set(range(len(best.text.split())))
            assert {i for i, _ in best.word_alignment} <= set(range(len(line.split())))
            (given,) = translator.align([(line, best.text)])
            if whole and given.tokens == best.tokens:
                assert given.alignment == best.alignment
                assert given.word_alignment == best.word_alignment
        if not whole:
            half = len(told.source_tokens) // 2
            early = [i for i, _ in told.hypotheses[0].alignment if i < half]
            assert 0 < len(early) < len(told.hypotheses[0].alignment)
            assert max(i for i, _ in told.hypotheses[0].word_alignment) > len(line.split()) // 2
