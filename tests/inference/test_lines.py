"""Markup, placeholders, terms, unknown words and sentences, through a translator."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from kakehashi.data.tokenizer import Tokenizer
from kakehashi.decoding.config import DecodingConfig
from kakehashi.decoding.hypothesis import Hypothesis
from kakehashi.decoding.methods import DiverseBeam
from kakehashi.errors import ConfigError
from kakehashi.inference.engine import Followed, Row
from kakehashi.inference.options import Options
from kakehashi.inference.request import Request
from kakehashi.inference.settings import BundleConfig
from kakehashi.inference.terms import Terms
from kakehashi.inference.translator import Translator
from kakehashi.models.config import TransformerConfig
from kakehashi.symbols import UNK


class Copier:
    """An engine that says its source word for word, last word first if asked to."""

    name = "copier"

    def __init__(self, turned: bool = False) -> None:
        self.turned = turned
        self.rules: list[Any] = []
        self.rows: list[Row] = []
        self.followed = 0

    def each(self, work: Any, batches: Any) -> Any:
        return map(work, batches)

    def search(self, rows: Any, *, rules: Any = None, n_best: int = 1, **_: Any) -> Any:
        self.rules += rules or []
        self.rows += rows
        made = [tuple(row[::-1] if self.turned else row) for row in rows]
        return [[Hypothesis(ids, -1.0, -2.0, True)] * n_best for ids in made]

    def follow(self, rows: Any, targets: Any, *, attending: bool = False) -> Any:
        found = []
        self.followed += len(rows)
        for row, target in zip(rows, targets, strict=True):
            looks = np.eye(len(row) + 1, dtype=np.float32)
            if self.turned:
                looks[:-1, :-1] = looks[:-1, :-1][::-1]
            found.append(Followed((-0.5,) * (len(target) + 1), looks))
        return found


def copier(tokenizer: Tokenizer, source: str = "de", target: str = "en", **given: Any) -> Any:
    config = BundleConfig(
        model=TransformerConfig(),
        vocab_size=tokenizer.vocab_size,
        source_language=source,
        target_language=target,
        max_length=given.pop("max_length", 60),
        decoding=DecodingConfig(batch_size=4),
        tokenizer_sha256="",
        weights_sha256="",
    )
    return Translator(Copier(**given), tokenizer, config)


def test_tags_come_back_in_every_candidate(tokenizer: Tokenizer) -> None:
    translator = copier(tokenizer)
    lines = [
        "<b>Der Hund</b> schläft.",
        "a < b",
        "",
        "<i></i><br>",
        "Der <b>Hund</b> &amp; <br/>er",
    ]
    found = translator.translate(lines, Options(markup=True, n_best=2))
    assert [each.text for each in found] == lines
    assert [h.text for h in found[0].hypotheses] == [lines[0]] * 2
    assert translator.engine.followed == 4  # the lines with tags and text, both candidates
    assert not any(each.warnings for each in found)
    assert [each.text for each in translator.translate(lines[:1])] == lines[:1]


def test_tags_over_sentences(tokenizer: Tokenizer) -> None:
    line = "<b>Der Hund schläft.  Er träumt</b> gut.<br/>Die <i>Katze</i> auch."
    for options in (Options(markup=True), Options(markup=True, split=True, details=True)):
        translator = copier(tokenizer)
        (found,) = translator.translate([line], options)
        assert found.text == line
    assert len(translator.engine.rows) == 3


def test_details_tell_of_the_text_without_tags(tokenizer: Tokenizer) -> None:
    (found,) = copier(tokenizer).translate(
        ["Der <b>Hund</b>. Er <x a='b c'/> schläft."],
        Options(markup=True, details=True, split=True),
    )
    assert found.hypotheses[0].word_alignment == tuple((i, i) for i in range(4))
    assert found.text == "Der <b>Hund</b>. Er <x a='b c'/> schläft."


def test_every_line_by_sentences_keeps_its_white_space(tokenizer: Tokenizer) -> None:
    line = "Dr. Weiß kam.  Er blieb!\tWarum? \u200b Darum."
    translator = copier(tokenizer)
    (found,) = translator.translate([line], Options(split=True))
    assert found.text == "Dr. Weiß kam.  Er blieb!\tWarum? \u200b Darum."
    assert len(translator.engine.rows) == 4
    assert found.warnings == ()
    line = "Er kam.  Er blieb!\tWarum? Darum."
    (found,) = copier(tokenizer, target="ja").translate([line], Options(split=True))
    assert found.text == "Er kam.  Er blieb!\tWarum?Darum."
    (found,) = copier(tokenizer, "ja", "de").translate(["月が昇る。山。"], Options(split=True))
    assert found.text == "月が昇る。 山。"


def test_long_lines_by_sentences_and_clauses(tokenizer: Tokenizer) -> None:
    translator = copier(tokenizer, max_length=24)
    line = "Der Hund schläft. Die Katze sitzt auf dem Dach, und das Kind spielt mit dem Ball. Gut!"
    short = "Der Hund. Er."
    found = translator.translate([line, short])
    assert [each.text for each in found] == [line, short]
    texts = [tokenizer.decode(row) for row in translator.engine.rows]
    assert {"Der Hund schläft.", "Gut!", short} < set(texts)
    assert max(len(row) for row in translator.engine.rows) < 24
    assert found[0].warnings[0].startswith("line 1 has ")
    assert f"{len(texts) - 1} parts, each by itself" in found[0].warnings[0]
    assert found[1].warnings == ()


def test_required_phrases_keep_a_line_whole(tokenizer: Tokenizer) -> None:
    translator = copier(tokenizer, max_length=9)
    request = Request("Der Hund schläft. Die Katze sitzt.", required=["Hund"])
    (found,) = translator.translate([request], Options(split=True))
    assert len(translator.engine.rows) == 1
    assert "whole" in found.warnings[0]


def test_placeholders_and_terms_are_required(tokenizer: Tokenizer) -> None:
    translator = copier(tokenizer, max_length=200)
    options = Options(placeholders=True, keep="#[0-9]+", terms=Terms({"hund": "dog"}))
    line = "Der Hund („{name}“) hat %s #12 {name}."
    (found,) = translator.translate([line], options)
    phrases = translator.engine.rules[0].required
    texts = [tokenizer.decode(phrase) for phrase in phrases]
    assert texts == ["dog", "{name}", "%s", "{name}", "#12"]
    quoted, bare = phrases[1], phrases[3]
    assert bare == tuple(tokenizer.encode("{name}"))
    assert quoted[0] != bare[0]  # joined to the quotation mark
    assert found.warnings == ("line 1: the translation lacks 'dog' for 'hund'",)
    # The word of a request wins over a term, and more than eight are not required.
    many = "Der Hund " + " ".join(f"{{a{i}}}" for i in range(12))
    translator.translate([Request(many, forbidden=["dog"])], options)
    assert len(translator.engine.rules[-1].required) == 8
    assert tuple(tokenizer.encode("dog")) not in translator.engine.rules[-1].required


def test_symbols_are_required_and_no_others_allowed(small_corpus: Any) -> None:
    tokenizer = Tokenizer.train(small_corpus.source, vocab_size=401, symbols=["{a}", "%s", "<b>"])
    translator = copier(tokenizer)
    lines = ["Hallo {a} <b>Hund", "Hallo Hund"]
    found = translator.translate(lines, Options(placeholders=True, markup=True))
    numbers = dict(zip(["{a}", "%s", "<b>"], tokenizer.symbol_numbers(), strict=True))
    by_line = {len(rules.forbidden): rules for rules in translator.engine.rules}
    assert set(by_line[1].required) == {(numbers["{a}"],), (numbers["<b>"],)}
    assert by_line[1].forbidden == ((numbers["%s"],),)
    assert by_line[3].required == ()
    assert [each.text for each in found] == lines


def test_lost_placeholders_are_told(tokenizer: Tokenizer) -> None:
    translator = copier(tokenizer)
    translator.engine.search = lambda rows, **_: [
        [Hypothesis(tuple(tokenizer.encode("Hi {a} {c}")), -1.0, -1.0, True)] for _ in rows
    ]
    (found,) = translator.translate(["Hallo {a} {a} {b}"], Options(placeholders=True))
    assert found.warnings == ("line 1: the translation lacks {a} {b}, adds {c}",)
    assert translator.translate(["Hallo {a} {a} {b}"])[0].warnings == ()


def test_unknown_words_are_copied(small_corpus: Any) -> None:
    lines = [*small_corpus.source, *small_corpus.target]
    bare = Tokenizer.train(lines, vocab_size=300, byte_fallback=False)
    translator = copier(bare)
    line = "Der Hund 鷗外 schläft. 漢!"
    same = "Der Hund 漢字 schläft. 鷗!"
    assert bare.encode(line) == bare.encode(same)
    found = translator.translate([line, same], Options(copy_unknown=True, details=True))
    assert [each.text for each in found] == [line, same]
    assert found[0].hypotheses[0].word_alignment == tuple((i, i) for i in range(5))
    (found,) = translator.translate(
        [f"Der <b>鷗外</b> {UNK}"], Options(copy_unknown=True, markup=True)
    )
    assert found.text == f"Der <b>鷗外</b> {UNK}"


def test_what_cannot_be_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(ConfigError, match="nothing to copy"):
        copier(tokenizer).stream(["a"], Options(copy_unknown=True))
    with pytest.raises(ConfigError, match="keep is no regular expression"):
        Options(keep="(")


def test_a_model_keeps_to_placeholders_terms_and_tags(saved: dict[str, Path], kind: str) -> None:
    """With real models, whatever they say."""
    translator = Translator.load(saved[kind])
    lines = ["Der <b>Hund</b> {a} <br/> schläft.", "<i>Die Katze</i> auf %s.", "Das Kind."]
    options = Options(
        markup=True, placeholders=True, terms=Terms({"hund": "dog"}), n_best=2, max_ratio=1.5
    )
    found = translator.translate(lines, options)
    for hypothesis in found[0].hypotheses:
        for wanted in ("<b>", "</b>", "{a}", "<br/>", "dog"):
            assert wanted in hypothesis.text
        assert hypothesis.text.index("<b>") < hypothesis.text.index("</b>")
    assert all("%s" in h.text and "<i>" in h.text for h in found[1].hypotheses)
    alone = [translator.translate([line], options)[0] for line in lines]
    assert [one.text for one in alone] == [each.text for each in found]


def test_a_real_model_may_say_the_unknown_piece(
    small_corpus: Any, random_model: Callable[[str], Any], kind: str, tokenizer: Tokenizer
) -> None:
    from kakehashi.inference.torch_engine import TorchEngine

    bare = Tokenizer.train(
        [*small_corpus.source, *small_corpus.target], vocab_size=401, byte_fallback=False
    )
    model = random_model(kind)
    with torch.no_grad():
        model.output.silence[UNK] = 50.0
    translator = copier(bare)
    translator.engine = TorchEngine(model)
    line = "Der 鷗外 schläft."
    plain = translator.translate([line], Options(beam=2))[0].text
    found = translator.translate([line], Options(beam=2, copy_unknown=True))[0].text
    assert "鷗外" not in plain and "\u2047" not in plain
    assert "鷗外" in found and "\u2047" not in found


BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029"


@pytest.mark.parametrize("target", ["en", "ja"])
@pytest.mark.parametrize("given", [{}, {"split": True}])
def test_breaks_of_the_source_stay_out(
    tokenizer: Tokenizer, target: str, given: dict[str, Any]
) -> None:
    """Between sentences and parts, in tags and comments, in references and placeholders."""
    lines = [
        f"Der Hund schläft.{c}Er träumt.{c}\x00{c}Er ist <b{c}a='x{c}y'>gut</b>." for c in BREAKS
    ]
    lines += [f"<!-- a{c} --><br{c}/>Er&#10;kam. Sie{c} <i></i{c}> schläft.{c}" for c in BREAKS]
    lines += ["<br\n/>", "Er kam.\r\nSie schläft."]
    for options in (
        Options(**given, n_best=2, markup=m, details=d) for m in (0, 1) for d in (0, 1)
    ):
        found = copier(tokenizer, target=target, max_length=24).translate(lines, options)
        assert len(found) == len(lines)
        for line, translation in zip(lines, found, strict=True):
            assert translation.text == translation.hypotheses[0].text
            for candidate in translation.hypotheses:
                assert len(candidate.text.splitlines()) == 1
                assert not any(c in candidate.text for c in BREAKS + "\x00")
            words = [word for word in ("Hund", "schläft", "träumt", "gut") if word in line]
            assert all(word in translation.text for word in words)
        assert found[-1].text.split() == ["Er", "kam.", "Sie", "schläft."]


def test_candidates_are_read_once_more_in_batches_of_the_usual_size(tokenizer: Tokenizer) -> None:
    translator = copier(tokenizer)
    lines = ["Der Hund", "schläft", "Die Katze", "Das Kind schläft gut"]
    plain = translator.translate(lines, Options(n_best=5, details=True))
    sizes: list[int] = []
    follow = translator.engine.follow

    def counted(rows: Any, targets: Any, **given: Any) -> Any:
        sizes.append(len(rows))
        return follow(rows, targets, **given)

    translator.engine.follow = counted
    assert translator.translate(lines, Options(n_best=5, details=True)) == plain
    assert sum(sizes) == 20
    assert max(sizes) <= 4  # the batch size


def test_a_blank_line_has_no_prefix_and_that_is_said(tokenizer: Tokenizer) -> None:
    requests = [
        Request("", prefix="The"),
        Request(" ", required=["dog"]),
        Request("", forbidden=["dog"]),
        Request("<br>", prefix="The"),
    ]
    found = copier(tokenizer).translate(requests, Options(markup=True))
    assert [each.text for each in found] == ["", "", "", "<br>"]
    assert ["nothing to translate" in " ".join(each.warnings) for each in found] == [1, 1, 0, 1]
    assert found[1].warnings[0].startswith("line 2 ")


def test_forbidden_phrases_that_come_out_all_the_same_are_told(tokenizer: Tokenizer) -> None:
    translator = copier(tokenizer)  # which keeps to no rules
    request = Request("Der Hund hundert Mal", forbidden=["Hund", "undert", "Katze"])
    (found,) = translator.translate([request], Options(n_best=2))
    assert found.warnings == (
        "line 1: the translation has the forbidden 'Hund' in other pieces",
        "line 1: translation 2 has the forbidden 'Hund' in other pieces",
    )


def test_a_diverse_beam_is_made_up_to_its_groups(tokenizer: Tokenizer) -> None:
    model = DecodingConfig(beam=5)
    assert Options(method=DiverseBeam(3)).search(model).beam == 6
    assert Options(method=DiverseBeam(5)).search(model).beam == 5
    assert Options(method=DiverseBeam(3), n_best=6).search(model).beam == 6
    with pytest.raises(ConfigError, match=r"beam of 5 .* multiple of 3 \(--beam\)"):
        Options(method=DiverseBeam(3), beam=5).search(model)
    with pytest.raises(
        ConfigError, match=r"^min_ratio is 3.0; it must be from 0 to max_ratio, 2.0"
    ):
        Options(min_ratio=3.0).search(model)
